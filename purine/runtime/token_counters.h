// Which tokens each operator still waits for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "purine/program/marked_graph.h"

namespace purine {

/// A firing of an operator: its position and the phase of its iteration, t mod phases().
struct Firing {
  static constexpr std::uint32_t no_position = 0xffffffffU;
  std::uint32_t position = no_position;
  std::uint32_t phase = 0;

  bool valid() const { return position != no_position; }
};

/// For each operator and each iteration that can be in progress, the number of tokens that are missing.
///
/// At any time the iterations in progress are oldest … oldest + window - 1, oldest being the first one that
/// is not finished. An operator u of them passes tokens to iterations up to oldest + window - 1 + D, where D
/// is the most tokens on an edge; so window + D counters an operator, taken in turn, keep apart all that can
/// be counted at the same time. A counter is armed again when its operator fires iteration t, before any
/// successor is released: the next iteration that it serves is t + window + D, and the first token of that
/// one comes from iteration t + window or later, which is admitted only after t is finished.
class TokenCounters {
 public:
  TokenCounters(const MarkedGraph& graph, int window)
      : graph_(graph),
        phases_(static_cast<std::uint32_t>(window) + graph.largest_tokens()),
        stride_(graph.operator_count()),
        counters_(std::make_unique<std::atomic<std::uint32_t>[]>(std::size_t{phases_} * stride_)) {
    for (std::uint32_t phase = 0; phase < phases_; ++phase) {
      for (std::uint32_t position = 0; position < stride_; ++position) arm({position, phase});
    }
    // The tokens that edges hold in the beginning: iterations below `tokens` need nothing from the edge.
    for (std::uint32_t position = 0; position < stride_; ++position) {
      for (const MarkedGraph::Edge& edge : graph.edges(position)) {
        for (std::uint32_t phase = 0; phase < edge.tokens(); ++phase) {
          counter({edge.to(), phase}).fetch_sub(1, std::memory_order_relaxed);
        }
      }
    }
  }

  std::uint32_t phases() const { return phases_; }
  /// The phase of `tokens` iterations later.
  std::uint32_t later(std::uint32_t phase, std::uint32_t tokens) const {
    const std::uint32_t sum = phase + tokens;
    return sum >= phases_ ? sum - phases_ : sum;
  }
  /// The phase of `tokens` iterations before.
  std::uint32_t earlier(std::uint32_t phase, std::uint32_t tokens) const {
    return later(phase, phases_ - tokens);
  }

  /// Passes a token; true if it was the last one, for one caller. Then all that the other callers did before
  /// has happened before.
  bool pass(Firing to, bool poison) {
    std::atomic<std::uint32_t>& missing = counter(to);
    if (poison) missing.fetch_or(poison_bit, std::memory_order_relaxed);
    // The last token needs no exchange: nobody else touches the counter until the operator has fired.
    if ((missing.load(std::memory_order_acquire) & ~poison_bit) == 1) return true;
    return (missing.fetch_sub(1, std::memory_order_acq_rel) & ~poison_bit) == 1;
  }
  /// True if a firing that has all its tokens got a poisoned one.
  bool poisoned(Firing firing) const {
    return (counter(firing).load(std::memory_order_relaxed) & poison_bit) != 0;
  }
  /// Arms the counter of a firing for the iteration that will use it next.
  void arm(Firing firing) { counter(firing).store(graph_.needs(firing.position), std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t poison_bit = 1U << 31U;

  std::atomic<std::uint32_t>& counter(Firing firing) const {
    return counters_[std::size_t{firing.phase} * stride_ + firing.position];
  }

  const MarkedGraph& graph_;
  const std::uint32_t phases_;
  const std::uint32_t stride_;
  const std::unique_ptr<std::atomic<std::uint32_t>[]> counters_;
};

}  // namespace purine
