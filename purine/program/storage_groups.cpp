#include "purine/program/storage_groups.h"

#include <algorithm>
#include <utility>

#include "purine/core/error.h"
#include "purine/program/half_copy.h"
#include "purine/program/ranges.h"

namespace purine::program {
namespace {

/// Bytes of a group.
struct Extent {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool overlaps(const Extent& other) const { return begin < other.end && other.begin < end; }
  bool covers(const Extent& other) const { return begin <= other.begin && other.end <= end; }
};

class Former {
 public:
  Former(const Lowered& lowered, std::span<const std::uint32_t> order, const MemoryOptions& options)
      : lowered_(lowered), order_(order), options_(options), position_(lowered.operators.size(), 0) {
    for (std::uint32_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
    result_.group_of.assign(lowered.tensors.size(), none);
    result_.offset_in_group.assign(lowered.tensors.size(), 0);
    result_.elided.assign(lowered.operators.size(), false);
  }

  StorageGroups run() {
    for (const LoweredVariable& variable : lowered_.variables) {
      if (variable.tensor == none) continue;
      const std::uint32_t group = new_group(variable.tensor, TensorStorage::Kind::variable);
      if (variable.next != none) join(variable.next, group, 0);
      if (!variable.parts.empty()) join_parts(variable, group);
    }
    for (const std::uint32_t op : order_) {
      if (options_.reuse) {
        share(op);
        share_ranges(op);
      }
      for (const std::uint32_t output : lowered_.operators[op].outputs) {
        if (group_of(output) != none) continue;
        const std::uint32_t group =
            new_group(output, slots_of(op) > 0 ? TensorStorage::Kind::slots : TensorStorage::Kind::arena);
        groups()[group].slots = std::max(slots_of(op), 1U);
      }
    }
    return std::move(result_);
  }

 private:
  std::vector<StorageGroup>& groups() { return result_.groups; }
  std::uint32_t group_of(std::uint32_t tensor) const { return result_.group_of[tensor]; }
  std::size_t offset_of(std::uint32_t tensor) const { return result_.offset_in_group[tensor]; }
  std::size_t bytes_of(std::uint32_t tensor) const { return lowered_.tensors[tensor].info.bytes(); }
  Extent extent_of(std::uint32_t tensor) const {
    return {offset_of(tensor), offset_of(tensor) + bytes_of(tensor)};
  }

  /// Versions kept of each output in memory of its own; 0 for outputs in the arena.
  std::uint32_t slots_of(std::uint32_t op) const {
    const LoweredOperator& record = lowered_.operators[op];
    if (record.slots > 0) return record.slots;
    return record.contract->brings_samples() && options_.slots > 1 ? options_.slots : 0;
  }

  std::uint32_t new_group(std::uint32_t tensor, TensorStorage::Kind kind) {
    const auto index = static_cast<std::uint32_t>(groups().size());
    groups().push_back({kind, lowered_.tensors[tensor].place, bytes_of(tensor), 1, {tensor}, {tensor}});
    result_.group_of[tensor] = index;
    return index;
  }

  void join(std::uint32_t tensor, std::uint32_t group, std::size_t offset) {
    result_.group_of[tensor] = group;
    result_.offset_in_group[tensor] = offset;
    groups()[group].tensors.push_back(tensor);
  }

  /// The tensor, which lies in the group, holds new content.
  void overwrite(std::uint32_t tensor) {
    std::vector<std::uint32_t>& version = groups()[group_of(tensor)].version;
    forget(version, extent_of(tensor));
    version.push_back(tensor);
  }

  /// Tensors of which some bytes are still the newest content stay.
  void forget(std::vector<std::uint32_t>& version, const Extent& extent) const {
    const auto is_gone = [&](std::uint32_t other) { return extent.covers(extent_of(other)); };
    version.erase(std::remove_if(version.begin(), version.end(), is_gone), version.end());
  }

  static bool may_be_viewed(const StorageGroup& group) { return group.kind != TensorStorage::Kind::variable; }

  void share(std::uint32_t op_index) {
    const LoweredOperator& op = lowered_.operators[op_index];
    std::size_t views = 0;
    for (const Sharing& sharing : op.contract->sharing()) {
      const auto input_at = static_cast<std::size_t>(sharing.input);
      const auto output_at = static_cast<std::size_t>(sharing.output);
      if (input_at >= op.inputs.size() || output_at >= op.outputs.size()) continue;
      const std::uint32_t input = op.inputs[input_at];
      const std::uint32_t output = op.outputs[output_at];
      if (group_of(output) != none) continue;
      StorageGroup& group = groups()[group_of(input)];
      const bool same_bytes = bytes_of(input) == bytes_of(output);
      const bool same_layout = op.input_layouts[input_at] == op.output_layouts[output_at];
      const bool same_place = group.place == op.place;
      if (!may_be_viewed(group) || !same_bytes || !same_layout || !same_place) continue;
      if (sharing.kind == Sharing::Kind::view || passes_through(op)) {
        join(output, group_of(input), offset_of(input));
        group.version.push_back(output);
        views += sharing.kind == Sharing::Kind::view ? 1 : 0;
      } else if (group.kind == TensorStorage::Kind::arena && is_last_reader(op_index, input)) {
        join(output, group_of(input), offset_of(input));
        overwrite(output);
      }
    }
    if (views > 0 && views == op.outputs.size()) result_.elided[op_index] = true;
  }

  /// Parts of a variable's next value, and the slices of its current one that they overwrite.
  void join_parts(const LoweredVariable& variable, std::uint32_t group) {
    if (variable.parts.front() == variable.next) return;  // it is received
    const std::uint32_t concatenation = lowered_.tensors[variable.next].producer;
    const std::vector<ByteRange> ranges = byte_ranges(lowered_, lowered_.operators[concatenation]);
    PURINE_CHECK_EQUAL(ranges.size(), variable.parts.size());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const ByteRange& range = ranges[i];
      PURINE_CHECK_EQUAL(range.part, variable.parts[i]);
      join(range.part, group, range.offset);
      const std::uint32_t slice = overwritten_slice(lowered_, variable.tensor, range);
      if (slice == none) continue;  // it is received
      join(slice, group, range.offset);
      result_.elided[lowered_.tensors[slice].producer] = true;
    }
    result_.elided[concatenation] = true;
  }

  /// A slice is a view of a range. What is concatenated is made in the result's storage, or the result lies
  /// where its parts do, as far as nothing else says where it lies; a concatenation that finds all of its
  /// inputs there has nothing to do. Offsets keep the alignment that kernels are promised.
  void share_ranges(std::uint32_t op_index) {
    const LoweredOperator& op = lowered_.operators[op_index];
    const std::vector<ByteRange> ranges = byte_ranges(lowered_, op);
    if (ranges.empty() || group_of(op.outputs[0]) != none) return;
    if (ranges.front().part == op.outputs[0]) {
      share_slice(op_index, ranges.front());
    } else if (!share_where_parts_lie(op_index, ranges)) {
      share_concatenation(op_index, ranges);
    }
  }

  void share_slice(std::uint32_t op_index, const ByteRange& range) {
    StorageGroup& group = groups()[group_of(range.whole)];
    const std::size_t offset = offset_of(range.whole) + range.offset;
    const bool fits = may_be_viewed(group) && offset % storage_alignment == 0 &&
                      group.place == lowered_.operators[op_index].place;
    if (!fits || bytes_of(range.part) == 0) return;
    join(range.part, group_of(range.whole), offset);
    group.version.push_back(range.part);
    result_.elided[op_index] = true;
  }

  /// Some parts lie in a larger group, each where it would if the result were a range of that.
  bool share_where_parts_lie(std::uint32_t op_index, const std::vector<ByteRange>& ranges) {
    for (const ByteRange& range : ranges) {
      const std::uint32_t g = group_of(range.part);
      const StorageGroup& group = groups()[g];
      if (bytes_of(range.part) == 0 || group.kind != TensorStorage::Kind::arena ||
          group.place != lowered_.operators[op_index].place || offset_of(range.part) < range.offset) {
        continue;
      }
      const std::size_t base = offset_of(range.part) - range.offset;
      if (base % storage_alignment == 0 && base + bytes_of(range.whole) <= group.bytes &&
          complete(op_index, ranges, g, base)) {
        return true;
      }
    }
    return false;
  }

  /// Puts the result at an offset of a group that holds some of its parts there, if all others can come to
  /// their places, or be copied there, once some sends have read these.
  bool complete(std::uint32_t op_index, const std::vector<ByteRange>& ranges, std::uint32_t g,
                std::size_t base) {
    std::vector<StorageOrder> orders;
    std::vector<Extent> missing;
    std::vector<const ByteRange*> received;
    for (const ByteRange& range : ranges) {
      const Extent extent{base + range.offset, base + range.offset + bytes_of(range.part)};
      const bool is_there = group_of(range.part) == g && offset_of(range.part) == extent.begin;
      if (is_there || extent.begin == extent.end) continue;
      if (may_be_received(op_index, range.part, g, extent, orders)) {
        received.push_back(&range);
        continue;
      }
      if (!may_write_over(op_index, g, extent, orders)) return false;
      missing.push_back(extent);
    }
    for (const ByteRange* range : received) {
      groups()[group_of(range->part)] = {};
      join(range->part, g, base + range->offset);
      overwrite(range->part);
    }
    const std::uint32_t output = lowered_.operators[op_index].outputs[0];
    join(output, g, base);
    for (const Extent& extent : missing) forget(groups()[g].version, extent);
    groups()[g].version.push_back(output);
    result_.orders.insert(result_.orders.end(), orders.begin(), orders.end());
    result_.elided[op_index] = missing.empty();
    return true;
  }

  /// Whether a part comes from another rank, into memory that nothing else lies in, and may come to its place
  /// instead: it is large, and what is there has been sent.
  bool may_be_received(std::uint32_t op_index, std::uint32_t part, std::uint32_t g, const Extent& extent,
                       std::vector<StorageOrder>& orders) const {
    const std::uint32_t producer = lowered_.tensors[part].producer;
    const StorageGroup& from = result_.groups[group_of(part)];
    const std::vector<std::uint32_t>& inputs = lowered_.operators[op_index].inputs;
    return producer != none && as_half_copy(*lowered_.operators[producer].contract) != nullptr &&
           from.kind == TensorStorage::Kind::slots && from.slots == 1 && from.tensors.size() == 1 &&
           from.place == result_.groups[g].place && bytes_of(part) >= options_.received_in_place &&
           extent.begin % storage_alignment == 0 && std::count(inputs.begin(), inputs.end(), part) == 1 &&
           may_write_over(producer, g, extent, orders);
  }

  /// Whether nothing but sends, earlier in the serial order, reads what the bytes hold now. Then adds orders
  /// behind them, and behind what made it.
  bool may_write_over(std::uint32_t op_index, std::uint32_t g, const Extent& extent,
                      std::vector<StorageOrder>& orders) const {
    const std::vector<std::uint32_t>& inputs = lowered_.operators[op_index].inputs;
    std::vector<StorageOrder> found;
    for (const std::uint32_t tensor : result_.groups[g].version) {
      if (!extent_of(tensor).overlaps(extent)) continue;
      if (std::find(inputs.begin(), inputs.end(), tensor) != inputs.end()) return false;
      for (const std::uint32_t reader : lowered_.tensors[tensor].consumers) {
        if (!reads(reader, tensor, extent)) continue;
        const bool sends = as_half_copy(*lowered_.operators[reader].contract) != nullptr;
        if (!sends || position_[reader] > position_[op_index]) return false;
        found.push_back({reader, op_index, 0});
      }
      const std::uint32_t producer = lowered_.tensors[tensor].producer;
      if (result_.elided[producer]) continue;
      if (position_[producer] > position_[op_index]) return false;
      found.push_back({producer, op_index, 0});
    }
    orders.insert(orders.end(), found.begin(), found.end());
    return true;
  }

  void share_concatenation(std::uint32_t op_index, const std::vector<ByteRange>& ranges) {
    const std::uint32_t output = ranges.front().whole;
    const auto may_move = [&](const ByteRange& range) {
      const StorageGroup& group = groups()[group_of(range.part)];
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
      const std::uint32_t from = group_of(range.part);
      if (from == result || !may_move(range)) continue;
      if (result == none) result = new_group(output, TensorStorage::Kind::arena);
      move_into(from, result, range.offset);
      ++moved;
    }
    result_.elided[op_index] = result != none && moved == ranges.size();
  }

  /// All that lies in a group lies in a range of another one from now on.
  void move_into(std::uint32_t from, std::uint32_t to, std::size_t offset) {
    const StorageGroup group = std::move(groups()[from]);
    groups()[from] = {};
    for (const std::uint32_t tensor : group.tensors) join(tensor, to, offset_of(tensor) + offset);
    std::vector<std::uint32_t>& version = groups()[to].version;
    version.insert(version.end(), group.version.begin(), group.version.end());
  }

  /// Whether a consumer touches some of these bytes of a tensor: not where it is a view, whose own consumers
  /// do, nor where it takes a slice of others.
  bool reads(std::uint32_t consumer, std::uint32_t tensor, const Extent& extent) const {
    if (result_.elided[consumer]) return false;
    const std::vector<ByteRange> ranges = byte_ranges(lowered_, lowered_.operators[consumer]);
    if (ranges.empty() || ranges.front().whole != tensor) return true;
    const std::size_t begin = offset_of(tensor) + ranges.front().offset;
    return Extent{begin, begin + bytes_of(ranges.front().part)}.overlaps(extent);
  }

  /// The operator is the only one that reads what the input's bytes hold now, and reads it once.
  bool is_last_reader(std::uint32_t op, std::uint32_t input) const {
    const std::vector<std::uint32_t>& inputs = lowered_.operators[op].inputs;
    if (std::count(inputs.begin(), inputs.end(), input) != 1) return false;
    const std::vector<std::uint32_t>& version = result_.groups[group_of(input)].version;
    if (std::find(version.begin(), version.end(), input) == version.end()) return false;
    const Extent extent = extent_of(input);
    for (const std::uint32_t tensor : version) {
      if (!extent_of(tensor).overlaps(extent)) continue;
      if (tensor != input && std::count(inputs.begin(), inputs.end(), tensor) != 0) return false;
      for (const std::uint32_t consumer : lowered_.tensors[tensor].consumers) {
        if (consumer != op && reads(consumer, tensor, extent)) return false;
      }
    }
    return true;
  }

  const Lowered& lowered_;
  std::span<const std::uint32_t> order_;
  const MemoryOptions& options_;
  std::vector<std::uint32_t> position_;
  StorageGroups result_;
};

}  // namespace

StorageGroups form_storage_groups(const Lowered& lowered, std::span<const std::uint32_t> order,
                                  const MemoryOptions& options) {
  return Former(lowered, order, options).run();
}

}  // namespace purine::program
