#include "purine/program/memory_plan.h"

#include <algorithm>
#include <map>

#include "purine/core/error.h"
#include "purine/program/half_copy.h"
#include "purine/program/ranges.h"

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

/// Tensors that lie in the same bytes: in all of them, or each in a range of them.
///
/// What is written into a group is read by values alone: an operator overwrites a tensor of it only where
/// nobody else reads any other tensor of the newest content, in whatever range. So within a group no orders
/// are needed but those of values. What held the bytes before must precede every operator that begins to
/// write without having read any of the group: the entries.
struct Group {
  TensorStorage::Kind kind = TensorStorage::Kind::arena;
  std::uint32_t place = 0;
  std::size_t bytes = 0;  // of the largest tensor; storage is rounded up
  std::size_t offset = 0;
  std::uint32_t slots = 1;
  std::vector<std::uint32_t> version;  // the tensors that hold the newest content
  std::vector<std::uint32_t> tensors;
  bool waits_for_ranks = false;  // an operator that touches it ends only when another rank has done something
};

class Planner {
 public:
  Planner(const Lowered& lowered, std::span<const std::uint32_t> order, const MemoryOptions& options)
      : lowered_(lowered),
        order_(order),
        options_(options),
        position_(lowered.operators.size(), 0),
        group_of_(lowered.tensors.size(), none),
        offset_in_group_(lowered.tensors.size(), 0),
        ancestors_(lowered.operators.size()) {
    for (std::uint32_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
    plan_.tensors.resize(lowered.tensors.size());
    plan_.elided.assign(lowered.operators.size(), false);
    plan_.arenas.resize(lowered.places.size());
    free_.resize(2 * lowered.places.size());
  }

  MemoryPlan run() {
    form_groups();
    order_variables();
    find_lifetimes();
    place();
    wrap_around();
    place_slots();
    finish();
    return std::move(plan_);
  }

 private:
  /// Versions kept of each output in memory of its own; 0 for outputs in the arena.
  std::uint32_t slots_of(std::uint32_t op) const {
    const LoweredOperator& record = lowered_.operators[op];
    if (record.slots > 0) return record.slots;
    return record.contract->brings_samples() && options_.slots > 1 ? options_.slots : 0;
  }

  void form_groups() {
    for (const LoweredVariable& variable : lowered_.variables) {
      if (variable.tensor == none) continue;
      const std::uint32_t group = new_group(variable.tensor, TensorStorage::Kind::variable);
      if (variable.next != none) join(variable.next, group, 0);
    }
    for (const std::uint32_t op : order_) {
      if (options_.reuse) {
        share(op);
        share_ranges(op);
      }
      for (const std::uint32_t output : lowered_.operators[op].outputs) {
        if (group_of_[output] != none) continue;
        const std::uint32_t group =
            new_group(output, slots_of(op) > 0 ? TensorStorage::Kind::slots : TensorStorage::Kind::arena);
        groups_[group].slots = std::max(slots_of(op), 1U);
      }
    }
  }

  std::uint32_t new_group(std::uint32_t tensor, TensorStorage::Kind kind) {
    const auto index = static_cast<std::uint32_t>(groups_.size());
    groups_.push_back({kind,
                       lowered_.tensors[tensor].place,
                       lowered_.tensors[tensor].info.bytes(),
                       0,
                       1,
                       {tensor},
                       {tensor}});
    group_of_[tensor] = index;
    return index;
  }

  void join(std::uint32_t tensor, std::uint32_t group, std::size_t offset) {
    group_of_[tensor] = group;
    offset_in_group_[tensor] = offset;
    groups_[group].tensors.push_back(tensor);
  }

  static bool may_be_viewed(const Group& group) { return group.kind != TensorStorage::Kind::variable; }
  std::size_t bytes_of(std::uint32_t tensor) const { return lowered_.tensors[tensor].info.bytes(); }

  void share(std::uint32_t op_index) {
    const LoweredOperator& op = lowered_.operators[op_index];
    std::size_t views = 0;
    for (const Sharing& sharing : op.contract->sharing()) {
      const auto input_at = static_cast<std::size_t>(sharing.input);
      const auto output_at = static_cast<std::size_t>(sharing.output);
      if (input_at >= op.inputs.size() || output_at >= op.outputs.size()) continue;
      const std::uint32_t input = op.inputs[input_at];
      const std::uint32_t output = op.outputs[output_at];
      if (group_of_[output] != none) continue;
      Group& group = groups_[group_of_[input]];
      const bool same_bytes = bytes_of(input) == bytes_of(output);
      const bool same_layout = op.input_layouts[input_at] == op.output_layouts[output_at];
      const bool same_place = group.place == op.place;
      if (!may_be_viewed(group) || !same_bytes || !same_layout || !same_place) continue;
      if (sharing.kind == Sharing::Kind::view) {
        join(output, group_of_[input], offset_in_group_[input]);
        group.version.push_back(output);
        ++views;
      } else if (group.kind == TensorStorage::Kind::arena && is_last_reader(op_index, input)) {
        join(output, group_of_[input], offset_in_group_[input]);
        group.version = {output};
      }
    }
    plan_.elided[op_index] = views > 0 && views == op.outputs.size();
  }

  /// A slice is a view of a range. What is concatenated is made in the result's storage, as far as nothing
  /// else says where it lies; a concatenation that finds all of its inputs there has nothing to do. Offsets
  /// keep the alignment that kernels are promised.
  void share_ranges(std::uint32_t op_index) {
    const LoweredOperator& op = lowered_.operators[op_index];
    const std::vector<ByteRange> ranges = byte_ranges(lowered_, op);
    if (ranges.empty() || group_of_[op.outputs[0]] != none) return;
    if (ranges.front().part == op.outputs[0]) {
      share_slice(op_index, ranges.front());
    } else {
      share_concatenation(op_index, ranges);
    }
  }

  void share_slice(std::uint32_t op_index, const ByteRange& range) {
    Group& group = groups_[group_of_[range.whole]];
    const std::size_t offset = offset_in_group_[range.whole] + range.offset;
    const bool fits = may_be_viewed(group) && offset % storage_alignment == 0 &&
                      group.place == lowered_.operators[op_index].place;
    if (!fits || bytes_of(range.part) == 0) return;
    join(range.part, group_of_[range.whole], offset);
    group.version.push_back(range.part);
    plan_.elided[op_index] = true;
  }

  void share_concatenation(std::uint32_t op_index, const std::vector<ByteRange>& ranges) {
    const std::uint32_t output = ranges.front().whole;
    const auto may_move = [&](const ByteRange& range) {
      const Group& group = groups_[group_of_[range.part]];
      return group.kind == TensorStorage::Kind::arena && group.place == lowered_.operators[op_index].place &&
             range.offset % storage_alignment == 0 && bytes_of(range.part) > 0 &&
             group.bytes == bytes_of(range.part);
    };
    std::size_t moved = 0;
    std::uint32_t result = none;
    for (const ByteRange& range : ranges) {
      if (bytes_of(range.part) == 0) {
        ++moved;
        continue;
      }
      const std::uint32_t from = group_of_[range.part];
      if (from == result || !may_move(range)) continue;
      if (result == none) result = new_group(output, TensorStorage::Kind::arena);
      move_into(from, result, range.offset);
      ++moved;
    }
    plan_.elided[op_index] = result != none && moved == ranges.size();
  }

  /// All that lies in a group lies in a range of another one from now on.
  void move_into(std::uint32_t from, std::uint32_t to, std::size_t offset) {
    Group group = std::move(groups_[from]);
    groups_[from] = {};
    for (const std::uint32_t tensor : group.tensors) {
      join(tensor, to, offset_in_group_[tensor] + offset);
    }
    std::vector<std::uint32_t>& version = groups_[to].version;
    version.insert(version.end(), group.version.begin(), group.version.end());
  }

  /// The operator is the only one that reads what the input's bytes hold now, and reads it once.
  bool is_last_reader(std::uint32_t op, std::uint32_t input) const {
    const std::vector<std::uint32_t>& inputs = lowered_.operators[op].inputs;
    if (std::count(inputs.begin(), inputs.end(), input) != 1) return false;
    const Group& group = groups_[group_of_[input]];
    if (std::find(group.version.begin(), group.version.end(), input) == group.version.end()) return false;
    for (const std::uint32_t tensor : group.version) {
      if (tensor != input && std::count(inputs.begin(), inputs.end(), tensor) != 0) return false;
      for (const std::uint32_t consumer : lowered_.tensors[tensor].consumers) {
        if (consumer != op && !plan_.elided[consumer]) return false;
      }
    }
    return true;
  }

  /// All readers of a variable's current value before its update; all readers of the next value, and the
  /// update itself, before the next update.
  void order_variables() {
    for (const LoweredVariable& variable : lowered_.variables) {
      if (variable.tensor == none || variable.next == none) continue;
      const std::uint32_t update = lowered_.tensors[variable.next].producer;
      for (const std::uint32_t reader : lowered_.tensors[variable.tensor].consumers) {
        if (reader != update) plan_.orders.push_back({reader, update, 0});
      }
      for (const std::uint32_t reader : lowered_.tensors[variable.next].consumers) {
        plan_.orders.push_back({reader, update, 1});
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
      groups_[g].waits_for_ranks = std::any_of(touchers.begin(), touchers.end(),
                                               [&](std::uint32_t op) { return waits_for_ranks_[op]; });
      for (const std::uint32_t op : touchers) {
        if (!produces_for_others(op, g)) last_touchers_[g].push_back(op);
        if (!reads_of(op, g)) entries_[g].push_back(op);
      }
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
                       [&](std::uint32_t input) { return group_of_[input] == group; });
  }

  bool produces_for_others(std::uint32_t op, std::uint32_t group) const {
    std::vector<std::uint32_t> pending = lowered_.operators[op].outputs;
    while (!pending.empty()) {
      const std::uint32_t tensor = pending.back();
      pending.pop_back();
      if (group_of_[tensor] != group) continue;
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

  /// Where a group takes its bytes from, and puts them back.
  std::uint32_t pool_of(const Group& group) const {
    return 2 * group.place + (group.waits_for_ranks ? 1 : 0);
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
        const std::uint32_t g = group_of_[output];
        if (placed[g] || groups_[g].kind != TensorStorage::Kind::arena) continue;
        placed[g] = true;
        groups_[g].offset = allocate(g, op, p);
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
    FreeSegments& free = free_[pool_of(groups_[g])];
    const std::size_t bytes = round_up(groups_[g].bytes);
    if (bytes == 0) return 0;
    const auto implied = [&](const Segment& segment) {
      return std::all_of(segment.holders.begin(), segment.holders.end(),
                         [&](std::uint32_t holder) { return ancestors_.precedes(holder, op); });
    };
    const auto distant = [&](const Segment& segment) {
      return segment.freed_at + options_.distance <= position;
    };
    Choice choice;
    if (options_.reuse) {
      choice = best_run(free, bytes, implied);
      if (!choice.found) {
        choice = best_run(free, bytes,
                          [&](const Segment& segment) { return distant(segment) || implied(segment); });
      }
    }
    if (!choice.found) {
      const std::size_t offset = plan_.arenas[place].bytes;
      plan_.arenas[place].bytes += bytes;
      first_taken_.push_back({pool_of(groups_[g]), offset, bytes, g});
      return offset;
    }
    take(free, choice.first, bytes, g);
    return choice.first;
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
    free_[pool_of(groups_[g])].emplace(groups_[g].offset,
                                       Segment{round_up(groups_[g].bytes), position, last_touchers_[g]});
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
    for (Group& group : groups_) {
      if (group.kind != TensorStorage::Kind::slots) continue;
      Arena& arena = plan_.arenas[group.place];
      const std::size_t bytes = round_up(group.bytes) * group.slots;
      group.offset = arena.bytes;
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
      if (group_of_[tensor] == none) continue;
      const Group& group = groups_[group_of_[tensor]];
      TensorStorage& storage = plan_.tensors[tensor];
      storage.kind = group.kind;
      storage.offset = group.offset + offset_in_group_[tensor];
      storage.slots = group.slots;
      storage.stride = group.kind == TensorStorage::Kind::slots ? round_up(group.bytes) : 0;
    }
    for (std::uint32_t i = 0; i < lowered_.variables.size(); ++i) {
      const LoweredVariable& variable = lowered_.variables[i];
      if (variable.tensor != none) plan_.tensors[variable.tensor].offset = i;
      if (variable.next != none) plan_.tensors[variable.next].offset = i;
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
  std::vector<std::uint32_t> group_of_;
  std::vector<std::size_t> offset_in_group_;  // by tensor
  std::vector<Group> groups_;
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
