// What every memory plan must hold, found by brute force.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "purine/program/memory_plan.h"
#include "purine/program/ranges.h"
#include "tests/support/mix_operator.h"

namespace purine::program {

inline MemoryPlan plan_of(Graph& graph, const MemoryOptions& options = {}) {
  Lowered lowered = lower(WholeGraph(graph));
  assign_layouts(graph, lowered, false);
  return plan_memory(lowered, serial_order(lowered), options);
}

/// Everything that a firing of an operator waits for, over three iterations, by brute force.
class Unrolled {
 public:
  Unrolled(const Lowered& lowered, const MemoryPlan& plan) : count_(lowered.operators.size()) {
    successors_.resize(count_ * iterations);
    const auto edge = [&](std::uint32_t from, std::uint32_t to, std::uint32_t delay) {
      for (std::size_t t = 0; t + delay < iterations; ++t) {
        successors_[node(from, t)].push_back(node(to, t + delay));
      }
    };
    for (const LoweredTensor& tensor : lowered.tensors) {
      if (tensor.producer == none) continue;
      for (const std::uint32_t consumer : tensor.consumers) edge(tensor.producer, consumer, 0);
    }
    for (const LoweredVariable& variable : lowered.variables) {
      if (variable.next == none) continue;
      for (const std::uint32_t reader : lowered.tensors[variable.tensor].consumers) {
        edge(lowered.tensors[variable.next].producer, reader, 1);
      }
    }
    for (const StorageOrder& order : plan.orders) edge(order.before, order.after, order.delay);
    for (std::uint32_t op = 0; op < count_; ++op) edge(op, op, 1);
  }

  static constexpr std::size_t iterations = 4;
  std::size_t node(std::uint32_t op, std::size_t iteration) const { return iteration * count_ + op; }

  /// All nodes behind one, itself not included.
  std::vector<bool> behind(std::size_t from) const {
    std::vector<bool> seen(successors_.size(), false);
    std::vector<std::size_t> pending = {from};
    while (!pending.empty()) {
      const std::size_t at = pending.back();
      pending.pop_back();
      for (const std::size_t next : successors_[at]) {
        if (seen[next]) continue;
        seen[next] = true;
        pending.push_back(next);
      }
    }
    return seen;
  }

 private:
  std::size_t count_;
  std::vector<std::vector<std::size_t>> successors_;
};

struct Access {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint32_t tensor = 0;
  std::size_t node = 0;
  bool writes = false;
};

/// Two accesses to the same bytes, one of them a write, by different firings must be ordered; and what a
/// reader reads must be what was last written there: the version that it is meant to see.
inline void check_plan(Graph& graph, const MemoryOptions& options, std::int32_t rank = 0) {
  Lowered lowered = lower(WholeGraph(graph), {.rank = rank});
  assign_layouts(graph, lowered, false);
  const std::vector<std::uint32_t> order = serial_order(lowered);
  const MemoryPlan plan = plan_memory(lowered, order, options);
  const Unrolled unrolled(lowered, plan);

  std::vector<Access> accesses;
  for (std::size_t t = 0; t < Unrolled::iterations; ++t) {
    for (std::uint32_t op = 0; op < lowered.operators.size(); ++op) {
      if (plan.elided[op]) continue;
      const auto touch = [&](std::uint32_t tensor, bool writes) {
        const TensorStorage& storage = plan.tensors[tensor];
        if (storage.kind == TensorStorage::Kind::variable) {
          const std::size_t begin = (std::size_t{1} << 40U) + (storage.offset << 20U) + storage.begin;
          accesses.push_back(
              {begin, begin + lowered.tensors[tensor].info.bytes(), tensor, unrolled.node(op, t), writes});
          return;
        }
        const std::size_t begin =
            (lowered.tensors[tensor].place << 30U) + storage.offset + t % storage.slots * storage.stride;
        accesses.push_back(
            {begin, begin + lowered.tensors[tensor].info.bytes(), tensor, unrolled.node(op, t), writes});
      };
      const std::vector<ByteRange> ranges = byte_ranges(lowered, lowered.operators[op]);
      const bool slices = !ranges.empty() && ranges.front().part == lowered.operators[op].outputs[0];
      for (const std::uint32_t input : lowered.operators[op].inputs) {
        touch(input, false);
        if (!slices) continue;
        const std::size_t begin = accesses.back().begin + ranges.front().offset;
        accesses.back().begin = begin;
        accesses.back().end = begin + lowered.tensors[ranges.front().part].info.bytes();
      }
      if (lowered.operators[op].contract->type() != "concat") {
        for (const std::uint32_t output : lowered.operators[op].outputs) touch(output, true);
        continue;
      }
      // Writes what isn't there yet.
      for (const ByteRange& range : ranges) {
        const TensorStorage& whole = plan.tensors[range.whole];
        const TensorStorage& part = plan.tensors[range.part];
        const bool is_there = part.kind == TensorStorage::Kind::arena && part.kind == whole.kind &&
                              part.offset == whole.offset + range.offset;
        if (is_there) continue;
        const std::size_t begin = (lowered.tensors[range.whole].place << 30U) + whole.offset +
                                  t % whole.slots * whole.stride + range.offset;
        accesses.push_back({begin, begin + lowered.tensors[range.part].info.bytes(), range.whole,
                            unrolled.node(op, t), true});
      }
    }
  }
  std::vector<std::vector<bool>> behind(lowered.operators.size() * Unrolled::iterations);
  const auto ordered = [&](std::size_t first, std::size_t second) {
    if (behind[first].empty()) behind[first] = unrolled.behind(first);
    return static_cast<bool>(behind[first][second]);
  };
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    for (std::size_t k = i + 1; k < accesses.size(); ++k) {
      const Access& a = accesses[i];
      const Access& b = accesses[k];
      if (a.node == b.node || (!a.writes && !b.writes) || a.end <= b.begin || b.end <= a.begin) continue;
      ASSERT_TRUE(ordered(a.node, b.node) || ordered(b.node, a.node))
          << lowered.path(graph, static_cast<std::uint32_t>(a.node % lowered.operators.size())) << " and "
          << lowered.path(graph, static_cast<std::uint32_t>(b.node % lowered.operators.size()))
          << " touch the same bytes without order";
      ASSERT_FALSE(ordered(a.node, b.node) && ordered(b.node, a.node)) << "a cycle";
    }
  }
  for (const Arena& arena : plan.arenas) EXPECT_LE(arena.slot_bytes, arena.bytes);
}

}  // namespace purine::program
