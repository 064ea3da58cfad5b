// What a rank has still to receive.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace purine {

/// Counts, operator by operator, the receives that were begun and those that are done; each operator's are
/// done in their order. Any thread may say so.
class Arrivals {
 public:
  explicit Arrivals(std::uint32_t operators)
      : begun_(std::make_unique<std::atomic<std::int64_t>[]>(operators)),
        done_(std::make_unique<std::atomic<std::int64_t>[]>(operators)),
        operators_(operators) {}

  void begin(std::uint32_t op) { begun_[op].fetch_add(1, std::memory_order_relaxed); }
  void end(std::uint32_t op) { done_[op].fetch_add(1, std::memory_order_relaxed); }

  struct Missing {
    std::uint32_t op = 0;
    std::int64_t iteration = 0;  ///< counted from the program's first
  };
  /// The first that is missing: of the earliest iteration, the first operator. What others wait for in turn
  /// comes later in the graph.
  std::optional<Missing> first_missing() const {
    std::optional<Missing> first;
    for (std::uint32_t op = 0; op < operators_; ++op) {
      const std::int64_t done = done_[op].load(std::memory_order_relaxed);
      if (begun_[op].load(std::memory_order_relaxed) <= done) continue;
      if (!first || done < first->iteration) first = {op, done};
    }
    return first;
  }

 private:
  std::unique_ptr<std::atomic<std::int64_t>[]> begun_;
  std::unique_ptr<std::atomic<std::int64_t>[]> done_;
  std::uint32_t operators_;
};

}  // namespace purine
