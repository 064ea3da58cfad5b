// A graph made ready to run, and its run.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/program/program.h"
#include "purine/session/runtime.h"
#include "purine/session/scheduling.h"
#include "purine/session/variables.h"

namespace purine {

/// One part of an operator that a worker ran, or an operator that a queue did. Times are nanoseconds of the
/// monotonic clock.
struct RanEvent {
  const Program* program = nullptr;
  std::uint32_t op = 0;
  int part = 0;
  std::int64_t iteration = 0;
  std::uint32_t lane = 0;  ///< index into Program::lanes
  int worker = -1;         ///< over all CPU lanes; -1 on a device's queue
  std::int64_t begin = 0;  ///< on a queue: when it was issued
  std::int64_t end = 0;
};

/// Something that this rank has waited for, with nothing else to do, for a while.
struct RankWait {
  int rank = 0;        ///< which is to send it
  std::string tensor;  ///< its path; empty where the rank is to say whether the run goes on
  std::int64_t iteration = 0;
  double seconds = 0;
};

struct SessionOptions {
  std::uint64_t seed = 1;
  /// Iterations that may be under way at the same time.
  int window = 2;
  /// How the workers share the operators.
  Scheduling scheduling = Scheduling::automatic;
  bool channels_last = true;
  /// Operators may run as one where that saves a pass over memory.
  bool fuse = true;
  /// How soon storage is reused: program::MemoryOptions::distance.
  std::uint32_t storage_distance = program::MemoryOptions().distance;
  /// The variables to work on; a new set if it is empty.
  std::shared_ptr<Variables> variables = {};
  /// Debugging: fill storage with NaN before it is taken into use.
  bool poison_freed = false;
  /// Called on the workers after each part of an operator, if set: keep it short.
  std::function<void(const RanEvent&)> trace = {};
  /// Called by the loop when this rank has done nothing for `notice_after` because something of another rank
  /// is missing, and again after twice that time, and so on. A rank that is gone fails the run instead: one
  /// that is waited for is slow, or waits itself.
  std::function<void(const RankWait&)> waits = {};
  std::chrono::milliseconds notice_after{10'000};
};

class Session;

/// What the host sees of an iteration. Valid until the loop goes on.
class Step {
 public:
  std::int64_t index = 0;    ///< the iteration, counted from the start of training
  std::int64_t epoch = 0;    ///< 0 without a data source
  std::int64_t samples = 0;  ///< in this iteration's batch; 0 without a data source
  bool last_of_epoch = false;

  /// True if this process has the value of a tensor: it is watched, and lies at this process's rank.
  bool has(Tensor tensor) const;
  /// The value of a watched scalar, of any dtype. A tensor that isn't watched, lies at another rank, or isn't
  /// a scalar, throws Error.
  double value(Tensor tensor) const;
  /// The elements of a watched tensor of dtype f32.
  std::span<const float> values(Tensor tensor) const;

 private:
  friend class Session;
  std::span<const std::byte> bytes(Tensor tensor) const;

  const Session* session_ = nullptr;
  const std::vector<std::vector<std::byte>>* watched_ = nullptr;  // in the order of Graph::watched
};

/// How far to run: exactly one of the two is set.
struct RunOptions {
  std::int64_t epochs =
      0;  ///< whole passes over the data source, from where it stands to the end of the last
  std::int64_t steps = 0;
};

/// Freezes a graph, plans its memory, binds its kernels and runs its iterations. What is wrong with the graph
/// is said by the constructor. The graph, the runtime and the variables must outlive the session.
///
/// A data source whose size is no multiple of the batch ends each epoch with a short batch: the session
/// freezes the graph a second time for that batch size, on the same variables and the same memory.
///
/// Where the runtime has an endpoint, all its processes make the same sessions of the same graph, and make
/// the same runs; each freezes and runs the part that lies at its rank, and has the variables there. The
/// constructor compares the graphs, and throws the same Error everywhere if they differ. Iterations overlap
/// as they do in one process. Whatever fails at one rank ends the run at all; the others throw RemoteError.
class Session {
 public:
  Session(Runtime& runtime, Graph& graph, SessionOptions options = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Waits for what is running.
  ~Session();

  /// The range of steps of a run: `for (const Step& step : session.run({.epochs = 5}))`. Reading a step is no
  /// barrier: later iterations are under way meanwhile. The first error of an operator is thrown by the loop,
  /// an IterationError with the operator's path and location, after all that runs has drained; no variable
  /// has then taken a value that depends on it.
  class Steps {
   public:
    class Iterator {
     public:
      using iterator_category = std::input_iterator_tag;
      using value_type = Step;
      using difference_type = std::ptrdiff_t;
      explicit Iterator(Session* session) : session_(session) {}
      const Step& operator*() const;
      Iterator& operator++();
      void operator++(int) { ++*this; }
      bool operator==(std::default_sentinel_t) const;

     private:
      Session* session_;
    };
    explicit Steps(Session* session) : session_(session) {}
    Iterator begin();
    std::default_sentinel_t end() const { return {}; }

   private:
    Session* session_;
  };
  Steps run(RunOptions options);
  /// Runs steps for their effects alone.
  void run_steps(std::int64_t steps);
  /// Called within the loop: no further iteration begins, and the loop ends after those that have; at all
  /// ranks after the same one, whichever of them calls it.
  void stop();

  /// Waits until nothing runs; the variables are then those that iteration `iteration()` begins with. Leaving
  /// a loop early (break) does the same: iterations that are under way are finished first. Called within the
  /// loop, it ends the loop at the step it is at. Throws the first error, if there is one.
  void drain();
  /// The next iteration; on resume the one to go on with. It decides the data, the random numbers and the
  /// schedule.
  std::int64_t iteration() const;
  void set_iteration(std::int64_t iteration);
  /// Iterations of one epoch, and samples in it; 0 without a data source.
  std::int64_t steps_per_epoch() const;
  std::int64_t samples_per_epoch() const;

  /// Supplies a graph input: the function fills the iteration's value and is called on a worker, ahead of the
  /// iteration. Needed for every input before the first run.
  void feed(Tensor input, std::function<void(std::int64_t iteration, std::span<std::byte> value)> fill);

  Variables& variables() { return *variables_; }
  std::shared_ptr<Variables> shared_variables() { return variables_; }
  const Program& program() const;
  /// How the workers share its operators.
  const SchedulingChoice& scheduling() const;
  /// Bytes that are planned at all locations: variables, activations and scratch of the largest program.
  std::size_t peak_bytes() const;
  /// Bytes planned at a location, without the scratch of CPU workers.
  std::size_t peak_bytes(Location location) const;
  /// Share of the time since the last call during which no operator but data sources ran or could run:
  /// waiting for data.
  double data_wait_share();

 private:
  friend class Step;
  class Implementation;

  std::shared_ptr<Variables> variables_;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace purine
