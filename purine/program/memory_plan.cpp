#include "purine/program/memory_plan.h"

#include <algorithm>
#include <map>

#include "purine/core/error.h"
#include "purine/program/half_copy.h"
#include "purine/program/storage_groups.h"

namespace purine::program {
namespace {

std::size_t round_up(std::size_t bytes) {
  return (bytes + storage_alignment - 1) / storage_alignment * storage_alignment;
}

/// Which operators precede which within an iteration, as far as it is known: bit sets up to a size, nothing
/// beyond.
class Ancestors {
 public:
  explicit Ancestors(std::size_t count)
      : words_(count <= limit ? (count + 63) / 64 : 0), bits_(words_ * count, 0) {}

  void add(std::uint32_t op, std::uint32_t predecessor) {
    if (words_ == 0) return;
    std::uint64_t* row = bits_.data() + op * words_;
    const std::uint64_t* other = bits_.data() + predecessor * words_;
    for (std::size_t i = 0; i < words_; ++i) row[i] |= other[i];
    row[predecessor / 64] |= std::uint64_t{1} << (predecessor % 64);
  }
  bool precedes(std::uint32_t predecessor, std::uint32_t op) const {
    if (words_ == 0) return false;
    return ((bits_[op * words_ + predecessor / 64] >> (predecessor % 64)) & 1U) != 0;
  }

 private:
  static constexpr std::size_t limit = 16384;
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

class Planner {
 public:
  Planner(const Lowered& lowered, std::span<const std::uint32_t> order, const MemoryOptions& options)
      : lowered_(lowered),
        order_(order),
        options_(options),
        position_(lowered.operators.size(), 0),
        formed_(form_storage_groups(lowered, order, options)),
        groups_(formed_.groups),
        offsets_(groups_.size(), 0),
        ancestors_(lowered.operators.size()) {
    for (std::uint32_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
    plan_.tensors.resize(lowered.tensors.size());
    plan_.elided = formed_.elided;
    plan_.orders = formed_.orders;
    plan_.arenas.resize(lowered.places.size());
    free_.resize(pools * lowered.places.size());
  }

  MemoryPlan run() {
    order_variables();
    find_lifetimes();
    place();
    wrap_around();
    place_slots();
    finish();
    return std::move(plan_);
  }

 private:
  /// All readers of a variable's current value before its update; all readers of the next value, and the
  /// update itself, before the next update.
  void order_variables() {
    for (const LoweredVariable& variable : lowered_.variables) {
      if (variable.tensor == none || variable.next == none) continue;
      const auto put_after_readers = [&](std::uint32_t update, std::uint32_t tensor, std::uint32_t delay) {
        for (const std::uint32_t reader : lowered_.tensors[tensor].consumers) {
          if (reader != update && !plan_.elided[reader]) plan_.orders.push_back({reader, update, delay});
        }
      };
      for (const std::uint32_t update : lowered_.updates(variable)) {
        put_after_readers(update, variable.tensor, 0);
        put_after_readers(update, variable.next, 1);
        // What reads a part that is written: the others are readers of the next value, or come before.
        for (const std::uint32_t part : variable.parts) {
          if (part != variable.next && lowered_.tensors[part].producer == update)
            put_after_readers(update, part, 1);
        }
      }
    }
  }

  /// Touchers of a group after which nobody else touches it as far as values tell: its readers, and producers
  /// whose output nobody reads. An operator that is a view has nothing to do and touches nothing.
  void find_lifetimes() {
    find_waits();
    last_touchers_.resize(groups_.size());
    entries_.resize(groups_.size());
    ends_.assign(groups_.size(), 0);
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      std::vector<std::uint32_t> touchers;
      for (const std::uint32_t tensor : groups_[g].tensors) {
        const std::uint32_t producer = lowered_.tensors[tensor].producer;
        if (producer != none && !plan_.elided[producer]) touchers.push_back(producer);
        for (const std::uint32_t consumer : lowered_.tensors[tensor].consumers) {
          if (!plan_.elided[consumer]) touchers.push_back(consumer);
        }
      }
      std::sort(touchers.begin(), touchers.end());
      touchers.erase(std::unique(touchers.begin(), touchers.end()), touchers.end());
      for (const std::uint32_t op : touchers) ends_[g] = std::max(ends_[g], position_[op]);
      for (const std::uint32_t op : touchers) {
        if (!produces_for_others(op, g)) last_touchers_[g].push_back(op);
        if (!reads_of(op, g)) entries_[g].push_back(op);
      }
      const auto waits = [&](std::uint32_t op) { return waits_for_ranks_[op]; };
      const bool begins_waiting = std::all_of(entries_[g].begin(), entries_[g].end(), waits);
      const bool waits_at_all = std::any_of(touchers.begin(), touchers.end(), waits);
      use_.push_back(!waits_at_all ? Use::local : begins_waiting ? Use::remote : Use::sent);
    }
  }

  /// Sends, receives, and what depends on a receive within an iteration.
  void find_waits() {
    waits_for_ranks_.assign(lowered_.operators.size(), false);
    for (const std::uint32_t op : order_) {
      const std::vector<std::uint32_t>& inputs = lowered_.operators[op].inputs;
      waits_for_ranks_[op] = as_half_copy(*lowered_.operators[op].contract) != nullptr ||
                             std::any_of(inputs.begin(), inputs.end(), [&](std::uint32_t input) {
                               const std::uint32_t producer = lowered_.tensors[input].producer;
                               return producer != none && waits_for_ranks_[producer];
                             });
    }
  }

  bool reads_of(std::uint32_t op, std::uint32_t group) const {
    const std::vector<std::uint32_t>& inputs = lowered_.operators[op].inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](std::uint32_t input) { return formed_.group_of[input] == group; });
  }

  bool produces_for_others(std::uint32_t op, std::uint32_t group) const {
    std::vector<std::uint32_t> pending = lowered_.operators[op].outputs;
    while (!pending.empty()) {
      const std::uint32_t tensor = pending.back();
      pending.pop_back();
      if (formed_.group_of[tensor] != group) continue;
      for (const std::uint32_t consumer : lowered_.tensors[tensor].consumers) {
        if (!plan_.elided[consumer]) return true;
        const std::vector<std::uint32_t>& outputs = lowered_.operators[consumer].outputs;
        pending.insert(pending.end(), outputs.begin(), outputs.end());
      }
    }
    return false;
  }

  struct Segment {
    std::size_t bytes = 0;
    std::uint32_t freed_at = 0;
    std::vector<std::uint32_t> holders;  // all of them precede whoever takes the segment
  };
  using FreeSegments = std::map<std::size_t, Segment>;  // by offset

  /// Who touches a group: nobody that waits for other ranks; some, but what makes it doesn't wait, like a
  /// gradient; all.
  enum class Use : std::uint8_t { local, sent, remote };
  static constexpr std::uint32_t pools = 3;

  /// Where a group takes its bytes from, and puts them back.
  std::uint32_t pool_of(std::uint32_t g) const {
    return pools * groups_[g].place + static_cast<std::uint32_t>(use_[g]);
  }

  void place() {
    std::vector<std::vector<std::uint32_t>> ending(order_.size());
    orders_into_.resize(lowered_.operators.size());
    for (const StorageOrder& order : plan_.orders) {
      if (order.delay == 0) orders_into_[order.after].push_back(order.before);
    }
    std::vector<bool> placed(groups_.size(), false);
    for (std::uint32_t p = 0; p < order_.size(); ++p) {
      const std::uint32_t op = order_[p];
      for (const std::uint32_t input : lowered_.operators[op].inputs) {
        if (lowered_.tensors[input].producer != none) ancestors_.add(op, lowered_.tensors[input].producer);
      }
      for (const std::uint32_t before : orders_into_[op]) ancestors_.add(op, before);
      for (const std::uint32_t output : lowered_.operators[op].outputs) {
        const std::uint32_t g = formed_.group_of[output];
        if (placed[g] || groups_[g].kind != TensorStorage::Kind::arena) continue;
        placed[g] = true;
        offsets_[g] = allocate(g, op, p);
        ending[ends_[g]].push_back(g);
      }
      for (const std::uint32_t g : ending[p]) release(g, p);
    }
  }

  struct Choice {
    bool found = false;
    std::size_t first = 0;  // offset of the first segment
    std::size_t bytes = 0;
  };

  /// `op`, at `position`, is the first of the group's entries.
  std::size_t allocate(std::uint32_t g, std::uint32_t op, std::uint32_t position) {
    const std::uint32_t place = groups_[g].place;
    FreeSegments& free = free_[pool_of(g)];
    const std::size_t bytes = round_up(groups_[g].bytes);
    if (bytes == 0) return 0;
    const auto implied = [&](const Segment& segment) {
      return std::all_of(segment.holders.begin(), segment.holders.end(),
                         [&](std::uint32_t holder) { return ancestors_.precedes(holder, op); });
    };
    // What is made without waiting for other ranks isn't to wait for them over its storage.
    const auto distant = [&](const Segment& segment) {
      return use_[g] != Use::sent && segment.freed_at + options_.distance <= position;
    };
    const auto may_take = [&](const Segment& segment) { return distant(segment) || implied(segment); };
    if (options_.reuse) {
      Choice choice = best_run(free, bytes, implied);
      if (!choice.found) choice = best_run(free, bytes, may_take);
      if (choice.found) {
        take(free, choice.first, bytes, g);
        return choice.first;
      }
    }
    // At the end of the arena, which grows by what is missing.
    const std::size_t end = plan_.arenas[place].bytes;
    const std::size_t offset = options_.reuse ? begin_of_last_run(free, end, may_take) : end;
    take(free, offset, end - offset, g);
    plan_.arenas[place].bytes = offset + bytes;
    first_taken_.push_back({pool_of(g), end, offset + bytes - end, g});
    return offset;
  }

  /// Where the free segments begin that all pass, follow one another, and end where the arena does; its end
  /// if there are none.
  template <typename Passes>
  static std::size_t begin_of_last_run(const FreeSegments& free, std::size_t end, const Passes& passes) {
    for (auto segment = free.rbegin(); segment != free.rend(); ++segment) {
      if (segment->first + segment->second.bytes != end || !passes(segment->second)) break;
      end = segment->first;
    }
    return end;
  }

  /// The shortest run of neighbouring free segments that all pass and together hold the bytes; the lowest on
  /// a tie.
  template <typename Passes>
  static Choice best_run(const FreeSegments& free, std::size_t bytes, const Passes& passes) {
    Choice best;
    auto first = free.end();
    std::size_t total = 0;
    const auto close = [&] {
      if (first != free.end() && total >= bytes && (!best.found || total < best.bytes)) {
        best = {true, first->first, total};
      }
      first = free.end();
      total = 0;
    };
    for (auto segment = free.begin(); segment != free.end(); ++segment) {
      if (first != free.end() && first->first + total != segment->first) close();
      if (!passes(segment->second)) {
        close();
        continue;
      }
      if (first == free.end()) first = segment;
      total += segment->second.bytes;
    }
    close();
    return best;
  }

  void take(FreeSegments& free, std::size_t offset, std::size_t bytes, std::uint32_t g) {
    auto segment = free.find(offset);
    while (bytes > 0) {
      PURINE_CHECK(segment != free.end() && segment->first == offset);
      Segment taken = std::move(segment->second);
      segment = free.erase(segment);
      for (const std::uint32_t holder : taken.holders) {
        for (const std::uint32_t entry : entries_[g]) {
          if (ancestors_.precedes(holder, entry)) continue;
          plan_.orders.push_back({holder, entry, 0});
          // Of an entry that is yet to come in the order the predecessors are not known yet.
          orders_into_[entry].push_back(holder);
          ancestors_.add(entry, holder);
        }
      }
      const std::size_t used = std::min(bytes, taken.bytes);
      offset += used;
      bytes -= used;
      if (used < taken.bytes) {
        taken.bytes -= used;
        segment = free.emplace(offset, std::move(taken)).first;
      }
    }
  }

  void release(std::uint32_t g, std::uint32_t position) {
    if (groups_[g].bytes == 0) return;
    free_[pool_of(g)].emplace(offsets_[g], Segment{round_up(groups_[g].bytes), position, last_touchers_[g]});
  }

  /// After the last operator every byte is free, held by the last touchers of its last content.
  void wrap_around() {
    for (const FirstTaken& first : first_taken_) {
      FreeSegments& free = free_[first.pool];
      auto segment = free.upper_bound(first.offset);
      PURINE_CHECK(segment != free.begin());
      for (--segment; segment != free.end() && segment->first < first.offset + first.bytes; ++segment) {
        for (const std::uint32_t holder : segment->second.holders) {
          for (const std::uint32_t entry : entries_[first.group]) plan_.orders.push_back({holder, entry, 1});
        }
      }
    }
  }

  /// Version t + K needs the readers of version t.
  void place_slots() {
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      const StorageGroup& group = groups_[g];
      if (group.kind != TensorStorage::Kind::slots) continue;
      Arena& arena = plan_.arenas[group.place];
      const std::size_t bytes = round_up(group.bytes) * group.slots;
      offsets_[g] = arena.bytes;
      arena.bytes += bytes;
      arena.slot_bytes += bytes;
      // All others are views of the first one.
      const std::uint32_t producer = lowered_.tensors[group.tensors.front()].producer;
      for (const std::uint32_t tensor : group.tensors) {
        for (const std::uint32_t consumer : lowered_.tensors[tensor].consumers) {
          if (!plan_.elided[consumer]) plan_.orders.push_back({consumer, producer, group.slots});
        }
      }
    }
  }

  void finish() {
    for (std::uint32_t tensor = 0; tensor < lowered_.tensors.size(); ++tensor) {
      const std::uint32_t g = formed_.group_of[tensor];
      if (g == none) continue;
      const StorageGroup& group = groups_[g];
      TensorStorage& storage = plan_.tensors[tensor];
      storage.kind = group.kind;
      storage.offset = offsets_[g] + formed_.offset_in_group[tensor];
      storage.slots = group.slots;
      storage.stride = group.kind == TensorStorage::Kind::slots ? round_up(group.bytes) : 0;
    }
    for (std::uint32_t i = 0; i < lowered_.variables.size(); ++i) {
      const LoweredVariable& variable = lowered_.variables[i];
      if (variable.tensor == none) continue;
      for (const std::uint32_t tensor : groups_[formed_.group_of[variable.tensor]].tensors) {
        plan_.tensors[tensor].offset = i;
        plan_.tensors[tensor].begin = formed_.offset_in_group[tensor];
      }
    }
    std::sort(plan_.orders.begin(), plan_.orders.end());
    plan_.orders.erase(std::unique(plan_.orders.begin(), plan_.orders.end()), plan_.orders.end());
  }

  struct FirstTaken {
    std::uint32_t pool;
    std::size_t offset;
    std::size_t bytes;
    std::uint32_t group;
  };

  const Lowered& lowered_;
  std::span<const std::uint32_t> order_;
  const MemoryOptions& options_;
  std::vector<std::uint32_t> position_;
  const StorageGroups formed_;
  const std::vector<StorageGroup>& groups_;
  std::vector<std::size_t> offsets_;  // of each group
  std::vector<Use> use_;              // of each group
  std::vector<std::vector<std::uint32_t>> last_touchers_;
  std::vector<std::vector<std::uint32_t>> entries_;      // of each group
  std::vector<std::vector<std::uint32_t>> orders_into_;  // by operator
  std::vector<std::uint32_t> ends_;
  std::vector<bool> waits_for_ranks_;  // by operator
  std::vector<FreeSegments> free_;     // by pool
  std::vector<FirstTaken> first_taken_;
  Ancestors ancestors_;
  MemoryPlan plan_;
};

}  // namespace

MemoryPlan plan_memory(const Lowered& lowered, std::span<const std::uint32_t> order,
                       const MemoryOptions& options) {
  return Planner(lowered, order, options).run();
}

}  // namespace purine::program
