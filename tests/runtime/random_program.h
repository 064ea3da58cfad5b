// Random marked graphs of tensors with slots, and an executor that finds every hazard.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "purine/program/marked_graph.h"
#include "purine/runtime/dispatcher.h"

namespace purine {

/// A program of tensors with slots. Version t of a tensor lies in slot t mod slots; versions below 0 are
/// there in the beginning. A read with delay d in iteration t is of version t - d, and d <= slots. A read of
/// the operator's own tensor with d = slots is the in-place update of a variable.
struct TestProgram {
  struct Tensor {
    std::uint32_t producer = 0;
    std::uint32_t slots = 1;
  };
  struct Read {
    std::uint32_t tensor = 0;
    std::uint32_t delay = 0;
  };
  struct Operator {
    std::vector<Read> reads;
    std::vector<std::uint32_t> writes;
    int parts = 1;
    std::uint32_t lane = 0;
  };

  std::vector<Operator> operators;
  std::vector<Tensor> tensors;
  std::vector<MarkedEdge> order_edges;  ///< in addition: reuse of storage and the like
  /// By lane: the device that it is a queue of, or one of those below.
  static constexpr int cpu = -1;
  static constexpr int remote = -2;
  std::vector<int> lane_devices{-1};

  /// The marked graph: an edge a read, and a credit back.
  MarkedGraph mark() const;
  /// Which operators must be poisoned, by [iteration][operator], if these (operator, iteration) throw.
  std::vector<std::vector<bool>> poisoned(const std::vector<std::pair<std::uint32_t, std::int64_t>>& throwing,
                                          std::int64_t iterations) const;
};

struct RandomProgramOptions {
  std::uint64_t seed = 0;
  std::uint32_t operators = 30;
  int most_parts = 4;
  std::vector<int> lane_devices{-1};
};

TestProgram random_program(const RandomProgramOptions& options);

/// What an operator that is told to fail throws.
struct TestFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Computes hashes: every part of every operator folds all that it reads into what it writes. Values lie in
/// plain memory, so ThreadSanitizer checks the ordering too; versions and counts of readers and writers find
/// hazards without it.
class CheckingExecutor : public Executor {
 public:
  struct Options {
    std::int64_t iterations = 0;  ///< the most that will run
    int window = 1;               ///< that must be respected
    std::uint64_t seed = 0;       ///< of the durations
    int longest_microseconds = 5;
    std::vector<std::pair<std::uint32_t, std::int64_t>> throwing;  ///< (operator, iteration): fail there
    bool fail_on_queue = false;  ///< when it runs there, not when it is issued
  };

  CheckingExecutor(const TestProgram& program, Options options);

  int parts(std::uint32_t op) const override { return program_.operators[op].parts; }
  void run(std::uint32_t op, std::int64_t iteration, int part, int worker) override;
  void issue(std::uint32_t op, std::int64_t iteration, Queue& queue) override;

  /// Runs iterations in order of operators, alone: the reference.
  void run_serially(std::int64_t iterations);

  /// Hazards found, empty if there were none.
  std::string hazards() const;
  /// Everything that was computed: a hash of all values that the operator's parts ever made, by operator.
  std::vector<std::uint64_t> results() const;
  /// Whether all parts of an operator ran in an iteration.
  bool ran(std::uint32_t op, std::int64_t iteration) const;
  /// The version in a tensor's slot for version t.
  std::int64_t version(std::uint32_t tensor, std::int64_t t) const;
  /// True if an operator of an iteration ran before the iteration before was finished.
  bool overlapped() const { return overlapped_.load(); }

 private:
  struct Slot {
    std::vector<std::uint64_t> values;                     // one a part of the producer
    std::unique_ptr<std::atomic<std::int64_t>[]> version;  // of each
    std::atomic<int> readers{0};
    std::atomic<int> writers{0};
  };
  struct Part {
    std::int64_t last_iteration = -1;
    std::uint64_t results = 0;
    std::vector<bool> ran;  // by iteration
  };

  Slot& slot(std::uint32_t tensor, std::int64_t version) const;
  void perform(std::uint32_t op, std::int64_t iteration, int part);
  std::uint64_t read(std::uint32_t op, const TestProgram::Read& read, std::int64_t iteration, int part);
  void write(std::uint32_t op, std::uint32_t tensor, std::int64_t iteration, int part, std::uint64_t value);
  void check_window(std::int64_t iteration);
  void pass_time(std::uint32_t op, std::int64_t iteration, int part) const;
  void report(const std::string& hazard);

  const TestProgram& program_;
  const Options options_;
  std::vector<std::vector<std::unique_ptr<Slot>>> slots_;  // by tensor
  std::vector<std::vector<Part>> parts_;                   // by operator
  std::vector<std::atomic<int>> done_;                     // by iteration: parts that are done
  int parts_an_iteration_ = 0;
  std::atomic<bool> overlapped_{false};
  mutable std::mutex mutex_;
  std::string hazards_;
};

}  // namespace purine
