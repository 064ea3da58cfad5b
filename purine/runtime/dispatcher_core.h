// The inside of the dispatcher.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "purine/runtime/cpu_workers.h"
#include "purine/runtime/dispatcher.h"
#include "purine/runtime/idle_workers.h"
#include "purine/runtime/ready_set.h"
#include "purine/runtime/token_counters.h"

namespace purine {

// A small generator for the random choices of tests (xorshift).
class Shuffle {
 public:
  explicit Shuffle(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 1) {}
  std::uint32_t below(std::uint32_t bound) {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return static_cast<std::uint32_t>(state_ >> 32U) % bound;
  }

 private:
  std::uint64_t state_;
};

// `mutex_` guards the admission of iterations and the failure. No other lock is taken under it but that of
// IdleWorkers.
class Dispatcher::Core final : private CompletionListener {
 public:
  Core(const MarkedGraph& graph, Executor& executor, std::vector<Lane> lanes, DispatcherOptions options);
  ~Core() override;

  void admit(std::int64_t end);
  bool wait_for(std::int64_t iteration);
  std::optional<bool> wait_for(std::int64_t iteration, std::chrono::nanoseconds limit);
  bool drain();
  void stop();
  std::int64_t finished() const;
  std::optional<Failure> failure() const;
  std::vector<Unfinished> unfinished() const;
  int worker_count() const { return static_cast<int>(workers_.size()); }
  int issue_ready();

 private:
  struct Worker;
  struct LaneState {
    LaneState(std::uint32_t lane_index, const Lane& lane_description, const MarkedGraph& graph,
              std::uint32_t phases)
        : index(lane_index),
          lane(lane_description),
          begin(graph.lane_begin(lane_index)),
          size(graph.lane_begin(lane_index + 1) - begin),
          ready(size, phases) {
      if (lane.workers > 0) return;
      flights = std::make_unique<std::atomic<std::int64_t>[]>(std::size_t{size} * phases);
      for (std::size_t i = 0; i < std::size_t{size} * phases; ++i) flights[i].store(not_in_flight);
    }

    const std::uint32_t index;
    const Lane lane;
    const std::uint32_t begin;  // its positions are begin … begin + size - 1
    const std::uint32_t size;
    ReadySet ready;
    IdleWorkers* idle = nullptr;  // of its workers, or its launcher

    // Of a queue's lane and a remote one: when each firing in flight was issued, by phase and position.
    std::atomic<std::int64_t>& flight(Firing firing) const {
      return flights[std::size_t{firing.phase} * size + (firing.position - begin)];
    }
    std::unique_ptr<std::atomic<std::int64_t>[]> flights;
    std::atomic<int> in_flight{0};
    std::optional<Shuffle> shuffle;
    std::vector<Worker*> resting_workers;  // without threads: those that have begun nothing
  };
  // The thread that issues to all queues of one device, or starts what a remote lane does.
  struct Launcher {
    IdleWorkers idle{1};
    std::vector<LaneState*> lanes;
    std::thread thread;
  };
  struct alignas(64) Worker {
    int index = 0;
    LaneState* lane = nullptr;
    // Firings that are done and not counted yet, all of one phase.
    std::uint32_t done_phase = 0;
    std::uint32_t done_count = 0;
    std::optional<Shuffle> shuffle;
    // For `unfinished`: position and phase, or `resting`.
    std::atomic<std::uint64_t> current{resting};
    // Without threads: of the part that it has begun.
    int part = 0;
    std::int64_t begin = 0;
  };
  // An operator of several parts. Whoever took the operator's firing from the ready set owns `next`, and
  // inserts the firing again if parts remain, so each part is taken by one worker, at the operator's
  // priority.
  struct MultiPart {
    int parts = 0;
    int next = 0;
    std::atomic<int> unfinished{0};
    std::atomic<bool> failed{false};
  };
  struct alignas(64) Iteration {
    std::atomic<std::int64_t> index{0};
    std::atomic<std::int64_t> unfinished{0};
    bool finished = false;  // under mutex_
  };

  static constexpr std::int64_t not_in_flight = std::numeric_limits<std::int64_t>::min();
  static constexpr std::uint64_t resting = ~std::uint64_t{0};
  static constexpr std::uint64_t poison_bit = std::uint64_t{1} << 63U;
  static constexpr std::uint64_t worker_bit = std::uint64_t{1} << 62U;  // the tag is a worker's number
  static std::uint64_t pack(Firing firing) { return std::uint64_t{firing.phase} << 32U | firing.position; }
  static Firing unpack(std::uint64_t tag) {
    return {static_cast<std::uint32_t>(tag), static_cast<std::uint32_t>(tag >> 32U) & 0xffffU};
  }

  void check_edges() const;
  void make_events();
  // The event that an operator of a queue's lane is marked by; null if nobody waits for it.
  Event* event_of(std::uint32_t position, std::uint32_t phase) const {
    if (event_index_.empty() || event_index_[position] == Firing::no_position) return nullptr;
    return events_[event_index_[position] + phase].get();
  }
  void start_threads();
  std::int64_t iteration_of(Firing firing) const {
    return iterations_[firing.phase].index.load(std::memory_order_relaxed);
  }
  bool runs_before(Firing a, Firing b) const;

  Firing first(const LaneState& lane) const;
  Firing take(LaneState& lane, Shuffle* shuffle);
  Firing take_any(LaneState& lane, Shuffle& shuffle);
  void make_ready(Firing firing);

  void work(Worker& worker);
  Firing next(Worker& worker);
  Firing run(Worker& worker, Firing firing);
  void enter_iteration(Worker& worker, Firing firing) {
    if (worker.done_phase == firing.phase) return;
    count_done(worker);
    worker.done_phase = firing.phase;
  }
  bool is_poisoned(Firing firing) const {
    return failed_.load(std::memory_order_relaxed) && counters_.poisoned(firing);
  }
  // The parts of a firing that has several, or null.
  MultiPart* multi_part(Firing firing) const {
    if (multi_part_index_.empty() || multi_part_index_[firing.position] == Firing::no_position)
      return nullptr;
    return multi_parts_[multi_part_index_[firing.position]].get();
  }
  int take_part(LaneState& lane, Firing firing, MultiPart& multi);
  bool execute(Worker& worker, Firing firing, int part);
  Firing end_part(Worker& worker, Firing firing, MultiPart& multi, bool succeeded);
  Firing complete(Worker& worker, Firing firing, bool poisoned);
  void count_done(Worker& worker);

  int begin_ready(LaneState& lane);
  bool begin(Worker& worker, Firing firing);
  Firing end(Worker& worker, Firing firing, bool succeeded);
  void part_completed(Worker& worker, const std::exception_ptr& error);

  void launch(Launcher& launcher);
  int issue_ready(LaneState& lane);
  void issue(LaneState& lane, Firing firing);
  void start(LaneState& lane, Firing firing);
  void take_off(LaneState& lane, Firing firing, std::int64_t begin);
  // False if the action throws, which is then the firing's failure.
  template <typename Action>
  bool attempt(Firing firing, Action action) {
    try {
      action();
      return true;
    } catch (...) {
      fail(firing, std::current_exception());
      return false;
    }
  }
  template <typename Passes>
  void pass_tokens(Firing firing, bool poisoned, Passes passes);
  void completed(std::uint64_t tag, std::exception_ptr error) override;

  void start_iterations();
  void pass_admission(std::uint32_t phase);
  void count_done(std::uint32_t phase, std::int64_t firings);
  void fail(Firing firing, const std::exception_ptr& cause);
  void note_poison(std::int64_t iteration);
  bool ended() const { return (failed_.load() || stopped_) && oldest_ == started_; }

  const MarkedGraph& graph_;
  Executor& executor_;
  const DispatcherOptions options_;
  const SteadyClock steady_clock_;
  const Clock& clock_;
  const bool tracing_;
  const bool shuffled_;

  TokenCounters counters_;
  std::vector<Iteration> iterations_;  // by phase
  std::vector<std::unique_ptr<LaneState>> lanes_;
  std::vector<std::uint32_t> multi_part_index_;  // by position, into multi_parts_; empty if there are none
  std::vector<std::unique_ptr<MultiPart>> multi_parts_;
  std::vector<std::uint32_t>
      event_index_;  // by position, of its first one in events_; empty if there are none
  std::vector<std::unique_ptr<Event>> events_;  // one a phase

  mutable std::mutex mutex_;
  std::condition_variable progress_;
  std::int64_t admitted_ = 0;  // iterations that may start
  std::int64_t started_ = 0;   // iterations that have
  std::int64_t oldest_ = 0;    // iterations that are finished, and the first one that is not
  bool stopped_ = false;
  std::optional<Failure> failure_;
  std::int64_t sound_iterations_ = 0;  // after a failure: the iterations before the first one that it is in
  std::atomic<bool> failed_{false};

  std::atomic<bool> quit_{false};
  alignas(64) std::atomic<std::int64_t> outstanding_{0};  // completions to be told
  std::vector<std::unique_ptr<IdleWorkers>> idle_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Launcher>> launchers_;
  std::unique_ptr<CpuWorkers> threads_;
};

}  // namespace purine
