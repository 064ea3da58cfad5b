// Runs a marked graph: starts an operator when, and only when, all it waits for is there.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "purine/program/marked_graph.h"
#include "purine/runtime/device.h"

namespace purine {

struct Failure;

/// Does the operators' work, for the dispatcher. Operators have the numbers of MarkedGraphBuilder; iterations
/// count from 0, the dispatcher's first. An exception fails the operator.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Independent parts of an operator of a CPU lane, which several workers may run at the same time. Asked
  /// once, when the dispatcher is made.
  virtual int parts(std::uint32_t /*op*/) const { return 1; }
  /// Runs one part on a CPU lane's worker; `worker` counts from 0 over all CPU lanes.
  virtual void run(std::uint32_t op, std::int64_t iteration, int part, int worker);
  /// In place of `run` where the dispatcher has no threads: begins a part on a worker, without blocking. The
  /// worker is busy until the listener is told, with the tag, that the part is done, or why it failed. If it
  /// throws, nothing was begun.
  virtual void begin(std::uint32_t op, std::int64_t iteration, int part, int worker,
                     CompletionListener& listener, std::uint64_t tag);
  /// Enqueues an operator of a queue's lane, without blocking. If it throws, nothing is enqueued.
  virtual void issue(std::uint32_t op, std::int64_t iteration, Queue& queue);
  /// Starts an operator of a remote lane, without blocking. The listener is told, with the tag, when it is
  /// done, or why it failed. Of operators that compete elsewhere, the one of the smallest urgency goes first:
  /// its latest start time in seconds, over all iterations. If it throws, nothing is started.
  virtual void start(std::uint32_t op, std::int64_t iteration, double urgency, CompletionListener& listener,
                     std::uint64_t tag);
  /// Told at once of every failure, by the thread that met it: others who depend on this run need not wait
  /// until it has drained. Each part of an operator that throws is a failure.
  virtual void failed(const Failure& /*failure*/) {}
};

/// Where operators run: a CPU with workers, a queue of a device, or elsewhere.
struct Lane {
  /// A CPU lane with this many workers of its own.
  static Lane cpu(int workers) { return {workers, nullptr, 0}; }
  /// A queue; at most `depth` operators are in flight on it, so that priorities mean something.
  static Lane on(Queue& queue, int depth = 4) { return {0, &queue, depth}; }
  /// Work that is done elsewhere, like sending and receiving: the executor starts whatever is ready, as much
  /// as there is, and it ends in any order.
  static Lane remote() { return {0, nullptr, std::numeric_limits<int>::max()}; }

  int workers = 0;
  Queue* queue = nullptr;
  int depth = 0;
};

/// One execution of an operator's part, for traces. Times are the clock's.
struct Execution {
  std::uint32_t op = 0;
  std::uint32_t lane = 0;
  std::int64_t iteration = 0;
  int part = 0;
  int worker = -1;         ///< -1 on a queue's lane and a remote one
  std::int64_t begin = 0;  ///< on those: when it was issued
  std::int64_t end = 0;    ///< on those: when its completion was told
};

/// Why a run failed: what an operator threw.
struct Failure {
  std::uint32_t op = 0;
  std::int64_t iteration = 0;
  std::exception_ptr cause;
};

/// An operator that was started and is not done.
struct Unfinished {
  std::uint32_t op = 0;
  std::int64_t iteration = 0;
  std::uint32_t lane = 0;
};

struct DispatcherOptions {
  /// Iterations in progress at the same time, at least 1 and at most 16: iteration t starts only after
  /// iteration t - window is finished.
  int window = 2;
  /// For tests: ready operators are chosen at random instead of by priority.
  std::optional<std::uint64_t> shuffle_seed = std::nullopt;
  /// Pin each worker to a core of its own, if the CPU lanes have as many workers as the process may use
  /// cores. On cores that other processes keep busy too, a pinned worker waits where one that may move would
  /// not.
  bool pin_workers = true;
  /// Called after each execution by the thread that ran it (or was told of it); empty for none.
  std::function<void(const Execution&)> trace = nullptr;
  /// Where trace times come from; the machine's monotonic clock by default. It must outlive the dispatcher.
  const Clock* clock = nullptr;
  /// False: no thread is made. Workers begin what they would run (Executor::begin), and the owner calls
  /// `issue_ready` after whatever was completed. A simulator in virtual time does so; all else is as with
  /// threads: who starts what, and in which order. Completions must not be told after the dispatcher's end.
  bool threads = true;
};

/// Runs iterations of a marked graph. Nothing waits for a whole iteration: operators of iteration t + 1 run
/// as soon as their tokens are there. Knows nothing of tensors, training or networks.
///
/// Errors: an operator that throws is poisoned, and so is every operator that an edge of kind `value` leads
/// to from a poisoned one. Poisoned operators are not run but pass their tokens, so all iterations that were
/// started come to an end; no further one is started. A dispatcher that has failed stays failed. What fails
/// on remote lanes is told only where nothing else failed, since it may be a consequence.
///
/// `admit`, `wait_for`, `drain`, `stop` and the queries may be called by any thread but the dispatcher's own.
class Dispatcher {
 public:
  /// The graph and the executor must outlive the dispatcher, and so must the lanes' queues. The graph's lanes
  /// are indices into `lanes`.
  Dispatcher(const MarkedGraph& graph, Executor& executor, std::vector<Lane> lanes,
             DispatcherOptions options = {});
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  /// Ends as soon as the operators that run now are done.
  ~Dispatcher();

  /// Iterations below `end` may start, as far as the window lets them. Returns at once; a smaller end than
  /// before changes nothing.
  void admit(std::int64_t end);
  /// Waits until an iteration, which must be admitted, is finished. False if it failed: if an operator failed
  /// in it or in one before it, or it never started. All that was started has ended then.
  bool wait_for(std::int64_t iteration);
  /// The same, but waits no longer than `limit`; none if the iteration is not finished by then.
  std::optional<bool> wait_for(std::int64_t iteration, std::chrono::nanoseconds limit);
  /// Waits until nothing is left to do: all admitted iterations are finished, or, after a failure or `stop`,
  /// all started ones. True if nothing failed.
  bool drain();
  /// Starts no further iterations, for good.
  void stop();

  /// How many iterations are finished.
  std::int64_t finished() const;
  /// The failure of the least (iteration, start time, operator), which after `drain` is the same in every
  /// run if it is of a CPU lane, or none.
  std::optional<Failure> failure() const;
  /// Operators that were started and are not done: what a stalled run waits for.
  std::vector<Unfinished> unfinished() const;
  /// One line for each of them, for messages: "stage_1/receive in iteration 3, on lane 2".
  std::string describe_unfinished(const std::function<std::string(std::uint32_t)>& path) const;
  /// Number of workers over all CPU lanes.
  int worker_count() const;

  /// Without threads: begins and issues what is ready and fits; returns how much that was. Completions that
  /// are told meanwhile, on the same thread, are taken into account.
  int issue_ready();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace purine
