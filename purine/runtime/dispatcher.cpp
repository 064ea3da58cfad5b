#include "purine/runtime/dispatcher.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "purine/core/error.h"
#include "purine/runtime/dispatcher_core.h"

namespace purine {
namespace {

// About ten microseconds: what waking a sleeping thread costs.
constexpr int idle_spins = 200;

}  // namespace

void Executor::run(std::uint32_t op, std::int64_t, int, int) {
  throw Error("dispatcher", "operator " + std::to_string(op) + " runs on a CPU, and its executor has no way");
}

void Executor::begin(std::uint32_t op, std::int64_t, int, int, CompletionListener&, std::uint64_t) {
  throw Error("dispatcher", "operator " + std::to_string(op) +
                                " is begun on a CPU without threads, and its executor has no way");
}

void Executor::issue(std::uint32_t op, std::int64_t, Queue&) {
  throw Error("dispatcher", "operator " + std::to_string(op) + " runs on a queue, and its executor has none");
}

void Executor::start(std::uint32_t op, std::int64_t, double, CompletionListener&, std::uint64_t) {
  throw Error("dispatcher",
              "operator " + std::to_string(op) + " runs elsewhere, and its executor has no way");
}

Dispatcher::Core::Core(const MarkedGraph& graph, Executor& executor, std::vector<Lane> lanes,
                       DispatcherOptions options)
    : graph_(graph),
      executor_(executor),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : steady_clock_),
      tracing_(static_cast<bool>(options_.trace)),
      shuffled_(options_.shuffle_seed.has_value()),
      counters_(graph, options_.window),
      iterations_(counters_.phases()) {
  PURINE_CHECK(options_.window >= 1 && options_.window <= 16);
  PURINE_CHECK(graph.lane_count() <= lanes.size());
  for (std::uint32_t index = 0; index < graph.lane_count(); ++index) {
    const Lane& lane = lanes[index];
    PURINE_CHECK(lane.workers > 0 || lane.depth > 0);
    lanes_.push_back(std::make_unique<LaneState>(index, lane, graph, counters_.phases()));
    if (lane.workers == 0) continue;
    for (std::uint32_t i = 0; i < lanes_.back()->size; ++i) {
      const std::uint32_t position = lanes_.back()->begin + i;
      const int parts = executor.parts(graph.operator_at(position));
      PURINE_CHECK(parts >= 1);
      if (parts == 1) continue;
      multi_part_index_.resize(graph.operator_count(), Firing::no_position);
      multi_part_index_[position] = static_cast<std::uint32_t>(multi_parts_.size());
      multi_parts_.push_back(std::make_unique<MultiPart>());
      multi_parts_.back()->parts = parts;
    }
  }
  check_edges();
  make_events();
  start_threads();
}

void Dispatcher::Core::check_edges() const {
  for (std::uint32_t position = 0; position < graph_.operator_count(); ++position) {
    const std::uint32_t from = graph_.lane_at(position);
    for (const MarkedGraph::Edge& edge : graph_.edges(position)) {
      const std::uint32_t to = graph_.lane_at(edge.to());
      const bool queues = lanes_[from]->lane.queue != nullptr && lanes_[to]->lane.queue != nullptr;
      PURINE_CHECK(edge.timing() == EdgeTiming::done || queues);
      PURINE_CHECK(edge.timing() != EdgeTiming::issued || from == to);
    }
  }
}

void Dispatcher::Core::make_events() {
  for (std::uint32_t position = 0; position < graph_.operator_count(); ++position) {
    for (const MarkedGraph::EventWait& wait : graph_.event_waits(position)) {
      event_index_.resize(graph_.operator_count(), Firing::no_position);
      if (event_index_[wait.from] != Firing::no_position) continue;
      event_index_[wait.from] = static_cast<std::uint32_t>(events_.size());
      Queue& queue = *lanes_[graph_.lane_at(wait.from)]->lane.queue;
      for (std::uint32_t phase = 0; phase < counters_.phases(); ++phase) {
        events_.push_back(queue.device().make_event());
      }
    }
  }
}

void Dispatcher::Core::start_threads() {
  int count = 0;
  for (const auto& lane : lanes_) count += lane->lane.workers;
  const bool oversubscribed = count > static_cast<int>(CpuWorkers::available_cores().size());
  for (const auto& lane : lanes_) {
    if (lane->lane.workers == 0) {
      const auto device = [](const Lane& of) { return of.queue != nullptr ? &of.queue->device() : nullptr; };
      auto launcher = std::find_if(launchers_.begin(), launchers_.end(), [&](const auto& candidate) {
        return device(candidate->lanes[0]->lane) == device(lane->lane);
      });
      if (launcher == launchers_.end()) {
        launcher = launchers_.insert(launchers_.end(), std::make_unique<Launcher>());
      }
      (*launcher)->lanes.push_back(lane.get());
      lane->idle = &(*launcher)->idle;
      if (shuffled_) lane->shuffle.emplace(*options_.shuffle_seed + lane->index);
    } else {
      idle_.push_back(std::make_unique<IdleWorkers>(oversubscribed ? 1 : idle_spins));
      lane->idle = idle_.back().get();
    }
    for (int i = 0; i < lane->lane.workers; ++i) {
      auto worker = std::make_unique<Worker>();
      worker->index = static_cast<int>(workers_.size());
      worker->lane = lane.get();
      if (shuffled_) worker->shuffle.emplace(*options_.shuffle_seed + workers_.size());
      if (!options_.threads) lane->resting_workers.insert(lane->resting_workers.begin(), worker.get());
      workers_.push_back(std::move(worker));
    }
  }
  if (!options_.threads) return;
  for (const auto& launcher : launchers_) {
    launcher->thread = std::thread([this, &launcher = *launcher] { launch(launcher); });
  }
  threads_ = std::make_unique<CpuWorkers>(
      count, options_.pin_workers, [this](int worker) { work(*workers_[static_cast<std::size_t>(worker)]); });
}

Dispatcher::Core::~Core() {
  quit_.store(true);
  for (const auto& idle : idle_) idle->close();
  for (const auto& launcher : launchers_) launcher->idle.close();
  threads_.reset();
  for (const auto& launcher : launchers_) {
    if (launcher->thread.joinable()) launcher->thread.join();
  }
  // The last thing a completion touches is this counter.
  while (options_.threads && outstanding_.load() != 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// ---- Iterations -------------------------------------------------------------------------------------------

void Dispatcher::Core::admit(std::int64_t end) {
  const std::lock_guard lock(mutex_);
  admitted_ = std::max(admitted_, end);
  start_iterations();
}

// Under mutex_: starts what may start.
void Dispatcher::Core::start_iterations() {
  while (started_ < admitted_ && started_ - oldest_ < options_.window && !stopped_ && !failed_.load()) {
    const auto phase = static_cast<std::uint32_t>(started_ % counters_.phases());
    Iteration& iteration = iterations_[phase];
    iteration.index.store(started_, std::memory_order_relaxed);
    iteration.unfinished.store(graph_.operator_count(), std::memory_order_relaxed);
    iteration.finished = false;
    ++started_;
    if (graph_.operator_count() == 0) {
      oldest_ = started_;
      progress_.notify_all();
    }
    pass_admission(phase);
  }
}

// Sources are in order of position, so those of one word of the ready set are inserted together.
void Dispatcher::Core::pass_admission(std::uint32_t phase) {
  std::span<const std::uint32_t> sources = graph_.sources();
  for (const auto& lane : lanes_) {
    std::uint32_t word = 0;
    std::uint64_t bits = 0;
    const auto insert = [&] {
      if (bits == 0) return;
      lane->ready.insert_word(phase, word, bits);
      lane->idle->notify();
      bits = 0;
    };
    for (; !sources.empty() && sources[0] - lane->begin < lane->size; sources = sources.subspan(1)) {
      if (!counters_.pass({sources[0], phase}, false)) continue;
      const std::uint32_t index = sources[0] - lane->begin;
      if (index / 64 != word) insert();
      word = index / 64;
      bits |= std::uint64_t{1} << (index % 64);
    }
    insert();
  }
}

void Dispatcher::Core::count_done(std::uint32_t phase, std::int64_t firings) {
  if (iterations_[phase].unfinished.fetch_sub(firings, std::memory_order_acq_rel) > firings) return;
  // An iteration ends after the one before, but two threads may tell so in the other order.
  const std::lock_guard lock(mutex_);
  iterations_[phase].finished = true;
  while (oldest_ < started_ && iterations_[oldest_ % counters_.phases()].finished) ++oldest_;
  start_iterations();
  progress_.notify_all();
}

void Dispatcher::Core::fail(Firing firing, const std::exception_ptr& cause) {
  const Failure failure{graph_.operator_at(firing.position), iteration_of(firing), cause};
  const auto order = [&](const Failure& of) {
    const std::uint32_t position = graph_.position_of(of.op);
    const Lane& lane = lanes_[graph_.lane_at(position)]->lane;
    const bool remote = lane.workers == 0 && lane.queue == nullptr;
    return std::tuple(remote, of.iteration, graph_.start(position), of.op);
  };
  note_poison(failure.iteration);
  {
    const std::lock_guard lock(mutex_);
    if (!failure_ || order(failure) < order(*failure_)) failure_ = failure;
  }
  executor_.failed(failure);
}

// An operator of the iteration has not done what it should: it failed itself, or what its queue did before
// it. In the latter case the failure itself may be told later, but before the run has drained.
void Dispatcher::Core::note_poison(std::int64_t iteration) {
  const std::lock_guard lock(mutex_);
  sound_iterations_ = failed_.load() ? std::min(sound_iterations_, iteration) : iteration;
  failed_.store(true);
}

bool Dispatcher::Core::wait_for(std::int64_t iteration) {
  std::unique_lock lock(mutex_);
  PURINE_CHECK(iteration < admitted_);
  progress_.wait(lock, [&] { return oldest_ > iteration || ended(); });
  return oldest_ > iteration && (!failed_.load() || sound_iterations_ > iteration);
}

std::optional<bool> Dispatcher::Core::wait_for(std::int64_t iteration, std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  PURINE_CHECK(iteration < admitted_);
  if (!progress_.wait_for(lock, limit, [&] { return oldest_ > iteration || ended(); })) return std::nullopt;
  return oldest_ > iteration && (!failed_.load() || sound_iterations_ > iteration);
}

bool Dispatcher::Core::drain() {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [&] { return oldest_ >= admitted_ || ended(); });
  return !failure_;
}

void Dispatcher::Core::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  progress_.notify_all();
}

std::int64_t Dispatcher::Core::finished() const {
  const std::lock_guard lock(mutex_);
  return oldest_;
}

std::optional<Failure> Dispatcher::Core::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::vector<Unfinished> Dispatcher::Core::unfinished() const {
  std::vector<Unfinished> result;
  const auto add = [&](std::uint64_t tag) {
    const Firing firing = unpack(tag);
    result.push_back(
        {graph_.operator_at(firing.position), iteration_of(firing), graph_.lane_at(firing.position)});
  };
  for (const auto& worker : workers_) {
    const std::uint64_t current = worker->current.load(std::memory_order_relaxed);
    if (current != resting) add(current);
  }
  for (const auto& lane : lanes_) {
    if (lane->flights == nullptr) continue;
    for (std::uint32_t phase = 0; phase < counters_.phases(); ++phase) {
      for (std::uint32_t position = lane->begin; position < lane->begin + lane->size; ++position) {
        const Firing firing{position, phase};
        if (lane->flight(firing).load(std::memory_order_relaxed) != not_in_flight) add(pack(firing));
      }
    }
  }
  return result;
}

// ---- Ready operators --------------------------------------------------------------------------------------

bool Dispatcher::Core::runs_before(Firing a, Firing b) const {
  if (a.phase == b.phase) return a.position < b.position;
  const std::int64_t iteration_a = iteration_of(a);
  const std::int64_t iteration_b = iteration_of(b);
  const double start_a = graph_.start(a.position) + static_cast<double>(iteration_a) * graph_.period();
  const double start_b = graph_.start(b.position) + static_cast<double>(iteration_b) * graph_.period();
  return start_a != start_b ? start_a < start_b : iteration_a < iteration_b;
}

// The ready firing that goes first, or none.
Firing Dispatcher::Core::first(const LaneState& lane) const {
  Firing best;
  for (std::uint32_t phase = 0; phase < counters_.phases(); ++phase) {
    const std::uint32_t index = lane.ready.find(phase);
    if (index == ReadySet::none) continue;
    const Firing candidate{lane.begin + index, phase};
    if (!best.valid() || runs_before(candidate, best)) best = candidate;
  }
  return best;
}

Firing Dispatcher::Core::take(LaneState& lane, Shuffle* shuffle) {
  if (shuffle != nullptr) return take_any(lane, *shuffle);
  for (;;) {
    const Firing firing = first(lane);
    if (!firing.valid() || lane.ready.take(firing.phase, firing.position - lane.begin)) return firing;
  }
}

Firing Dispatcher::Core::take_any(LaneState& lane, Shuffle& shuffle) {
  if (lane.size == 0) return {};
  const std::uint32_t first_phase = shuffle.below(counters_.phases());
  for (std::uint32_t i = 0; i < counters_.phases(); ++i) {
    const std::uint32_t phase = counters_.later(first_phase, i);
    std::uint32_t index = lane.ready.find(phase, shuffle.below(lane.size));
    if (index == ReadySet::none) index = lane.ready.find(phase);
    if (index != ReadySet::none && lane.ready.take(phase, index)) return {lane.begin + index, phase};
  }
  return {};
}

void Dispatcher::Core::make_ready(Firing firing) {
  LaneState& lane = *lanes_[graph_.lane_at(firing.position)];
  lane.ready.insert(firing.phase, firing.position - lane.begin);
  lane.idle->notify();
}

// ---- The public class -------------------------------------------------------------------------------------

Dispatcher::Dispatcher(const MarkedGraph& graph, Executor& executor, std::vector<Lane> lanes,
                       DispatcherOptions options)
    : core_(std::make_unique<Core>(graph, executor, std::move(lanes), std::move(options))) {}

Dispatcher::~Dispatcher() = default;

void Dispatcher::admit(std::int64_t end) {
  core_->admit(end);
}
bool Dispatcher::wait_for(std::int64_t iteration) {
  return core_->wait_for(iteration);
}
std::optional<bool> Dispatcher::wait_for(std::int64_t iteration, std::chrono::nanoseconds limit) {
  return core_->wait_for(iteration, limit);
}
bool Dispatcher::drain() {
  return core_->drain();
}
void Dispatcher::stop() {
  core_->stop();
}
std::int64_t Dispatcher::finished() const {
  return core_->finished();
}
std::optional<Failure> Dispatcher::failure() const {
  return core_->failure();
}
std::vector<Unfinished> Dispatcher::unfinished() const {
  return core_->unfinished();
}
int Dispatcher::worker_count() const {
  return core_->worker_count();
}
int Dispatcher::issue_ready() {
  return core_->issue_ready();
}

std::string Dispatcher::describe_unfinished(const std::function<std::string(std::uint32_t)>& path) const {
  std::string text;
  for (const Unfinished& entry : unfinished()) {
    if (!text.empty()) text += "\n";
    text += path(entry.op) + " in iteration " + std::to_string(entry.iteration) + ", on lane " +
            std::to_string(entry.lane);
  }
  return text;
}

}  // namespace purine
