#include "purine/session/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "purine/core/error.h"
#include "purine/graph/transform.h"
#include "purine/session/agreement.h"
#include "purine/session/device_memory.h"
#include "purine/session/memory_limit.h"
#include "purine/session/run_end.h"
#include "purine/session/samples_per_epoch.h"
#include "purine/session/session_program.h"
#include "purine/session/wait_meter.h"

namespace purine {
namespace {

using Fill = SessionProgram::Fill;

}  // namespace

class Session::Implementation {
 public:
  Implementation(Runtime& runtime, Graph& graph, SessionOptions options, Variables& variables)
      : runtime_(runtime),
        graph_(graph),
        options_(std::move(options)),
        workers_(runtime.workers()),
        end_(runtime.endpoint()) {
    if (runtime.endpoint() != nullptr) compare_graphs(*runtime.endpoint(), graph, options_.seed);
    at_all_ranks(runtime.endpoint(), [&] { prepare(variables); });
  }

  ~Implementation() {
    if (active_ == nullptr) return;
    try {
      if (std::uncaught_exceptions() > exceptions_) tell_others("left its run by an exception");
      drain();
    } catch (const Error&) {
      // Whoever wants to know of it calls drain().
    }
  }

  void begin(RunOptions options) {
    drain();
    if ((options.epochs > 0) == (options.steps > 0) || options.epochs < 0 || options.steps < 0) {
      throw Error("session",
                  "a run of " + std::to_string(options.epochs) + " epochs and " +
                      std::to_string(options.steps) + " steps can't be",
                  "give either epochs or steps, at least 1");
    }
    if (options.epochs > 0 && samples_per_epoch_ == 0) {
      throw Error("session", "the graph has no data source with an end, so epochs mean nothing",
                  "run a number of steps");
    }
    const std::int64_t end = options.steps > 0
                                 ? next_ + options.steps
                                 : (next_ / steps_per_epoch() + options.epochs) * steps_per_epoch();
    if (runtime_.endpoint() != nullptr) {
      compare_words(*runtime_.endpoint(),
                    "runs iterations " + std::to_string(next_) + " to " + std::to_string(end - 1),
                    "every process must make the same runs");
    }
    end_.begin(runtime_.next_run(), end);
    seen_ = next_;
    memory_->upload_variables();
    meter_.reset();
    advance();
  }

  /// Does what asks other ranks. If the run has failed there, what runs here ends too.
  template <typename Function>
  auto or_drain(Function&& function) -> decltype(function()) {
    try {
      return function();
    } catch (const RemoteError&) {
      if (active_ != nullptr && !active_->drain()) fail(*active_);
      active_ = nullptr;
      end_.abandon(seen_);
      memory_->download_variables();
      throw;
    }
  }

  /// Waits for the step at `seen_`, if there is one.
  void advance() {
    while (true) {
      const std::int64_t limit = or_drain([&] { return end_.limit(next_); });
      if (seen_ >= end_.end()) {
        drain();
        return;
      }
      if (seen_ < limit) {
        SessionProgram& variant = activate(seen_);
        admit(std::min({limit, seen_ + variant.ring_size(), boundary_after(seen_)}));
      }
      if (seen_ == next_) {  // nothing may be admitted until all ranks have said where the run ends
        wait_for_end();
        continue;
      }
      SessionProgram& variant = *active_;
      const std::optional<bool> good = wait_for_step(variant);
      if (!good) continue;  // perhaps another rank has ended the run, or is late
      if (!*good) fail(variant);
      break;
    }
    const bool is_short = active_ == short_.get();
    step_.index = seen_;
    step_.epoch = samples_per_epoch_ > 0 ? seen_ / steps_per_epoch() : 0;
    step_.samples = samples_per_epoch_ > 0 ? (is_short ? samples_per_epoch_ % batch_ : batch_) : 0;
    step_.last_of_epoch = samples_per_epoch_ > 0 && (seen_ + 1) % steps_per_epoch() == 0;
  }

  std::optional<bool> wait_for_step(SessionProgram& variant) {
    if (runtime_.endpoint() == nullptr) return variant.wait_for(seen_);
    constexpr std::chrono::milliseconds often(10);
    constexpr std::chrono::milliseconds rarely(200);
    const std::optional<bool> good = variant.wait_for(seen_, end_.agreed() ? rarely : often);
    if (!good) notice_wait(&variant);
    return good;
  }

  /// Lets a moment pass in which the other ranks may say where the run ends.
  void wait_for_end() {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    notice_wait(active_);
  }

  void notice_wait(const SessionProgram* variant) {
    if (!options_.waits) return;
    const double seconds = meter_.idle_seconds();
    const double first = std::chrono::duration<double>(options_.notice_after).count();
    if (seconds < first) next_notice_ = first;
    if (seconds < next_notice_) return;
    std::optional<RankWait> wait = variant != nullptr ? variant->waits_for() : std::nullopt;
    if (const std::optional<int> rank = end_.waits_for(); !wait && rank) wait = RankWait{*rank, "", next_, 0};
    if (!wait) return;
    next_notice_ = 2 * seconds;
    wait->seconds = seconds;
    options_.waits(*wait);
  }

  void stop() { end_.stop(next_); }

  void drain() {
    if (active_ == nullptr) return;
    or_drain([&] {
      end_.stop(next_);
      while (!end_.agreed()) {
        end_.limit(next_);
        wait_for_end();
      }
    });
    while (next_ < end_.end()) {
      activate(next_);
      admit(std::min(end_.end(), boundary_after(next_)));
    }
    if (!active_->drain()) fail(*active_);
    // Nobody takes a run for good that has failed elsewhere.
    if (Endpoint* endpoint = runtime_.endpoint())
      or_drain([&] { endpoint->all_gather("has ended its run"); });
    active_ = nullptr;
    seen_ = std::max(seen_, next_ - 1);  // a loop that goes on has come to its end
    memory_->download_variables();
  }

  [[noreturn]] void fail(SessionProgram& variant) {
    variant.drain();
    active_ = nullptr;
    end_.abandon(seen_);
    failed_ = &variant;
    memory_->download_variables();
    variant.throw_failure();
  }

  void prepare(Variables& variables) {
    if (options_.window < 1 || options_.window > 8) {
      throw Error("session", "a window of " + std::to_string(options_.window) + " iterations can't be",
                  "give 1 to 8");
    }
    check_ranks();
    samples_per_epoch_ = find_samples_per_epoch(graph_);
    if (samples_per_epoch_ > 0) batch_ = batch_size(graph_);
    main_ = std::make_unique<SessionProgram>(runtime_, graph_, options_, fills_, meter_);
    if (samples_per_epoch_ > 0 && samples_per_epoch_ % batch_ != 0) {
      short_graph_ = std::make_unique<Graph>();
      with_batch_size(graph_, samples_per_epoch_ % batch_, *short_graph_);
      short_ = std::make_unique<SessionProgram>(runtime_, *short_graph_, options_, fills_, meter_);
    }
    for (const SessionProgram* variant : variants()) {
      for (const Location& place : variant->program().places()) {
        if (runtime_.has(place)) continue;
        throw Error("session", "the graph uses " + place.text() + ", which the runtime doesn't have",
                    "name it in RuntimeOptions::devices, or --devices");
      }
    }
    scheduling_ = choose_scheduling(main_->program(), runtime_, options_.scheduling, options_.window);
    if (short_ != nullptr) short_->program().divide(scheduling_.parts);
    runtime_.save_measurements();
    check_memory(planned_bytes(true));
    variables.create(graph_, runtime_.cpu_kernels(), options_.seed, runtime_.rank());
    memory_ = std::make_unique<DeviceMemory>(runtime_, graph_, variables);
    for (const SessionProgram* variant : variants()) memory_->reserve(variant->program());
    memory_->allocate();
    const std::size_t scratch = largest_scratch();
    for (int i = 0; i < workers_; ++i) scratch_.emplace_back(scratch);
    for (SessionProgram* variant : variants()) variant->start(runtime_, *memory_, scratch_);
  }

  void check_ranks() {
    for (std::uint32_t i = 0; i < graph_.tensor_count(); ++i) {
      const Location location = graph_.tensor(i).location();
      if (location.rank < runtime_.ranks()) continue;
      throw Error("session",
                  "the graph uses " + location.text() + ", and the run has " +
                      std::to_string(runtime_.ranks()) + (runtime_.ranks() == 1 ? " process" : " processes"),
                  "start one process a rank");
    }
  }

  /// Before the other ranks can wait for this one.
  void tell_others(const std::string& cause) {
    Endpoint* endpoint = runtime_.endpoint();
    if (endpoint != nullptr) endpoint->fail("at " + endpoint->host(endpoint->rank()) + ", " + cause);
  }

  /// While nothing of later iterations is admitted: makes the program of an iteration the one that runs.
  SessionProgram& activate(std::int64_t iteration) {
    SessionProgram& variant = variant_of(iteration);
    if (active_ == &variant) return variant;
    if (active_ != nullptr && !active_->drain()) fail(*active_);
    active_ = &variant;
    variant.begin_at(iteration);
    return variant;
  }

  void admit(std::int64_t end) {
    next_ = std::max(next_, end);
    active_->admit(end);
  }

  /// The first iteration after this one that is another program's.
  std::int64_t boundary_after(std::int64_t iteration) const {
    if (short_ == nullptr) return std::numeric_limits<std::int64_t>::max();
    const std::int64_t last = iteration / steps_per_epoch() * steps_per_epoch() + steps_per_epoch() - 1;
    return iteration == last ? last + 1 : last;
  }

  SessionProgram& variant_of(std::int64_t iteration) {
    if (failed_ != nullptr) failed_->throw_failure();
    return short_ != nullptr && (iteration + 1) % steps_per_epoch() == 0 ? *short_ : *main_;
  }

  std::int64_t steps_per_epoch() const {
    return samples_per_epoch_ > 0 ? (samples_per_epoch_ + batch_ - 1) / batch_ : 0;
  }

  std::vector<SessionProgram*> variants() const {
    std::vector<SessionProgram*> all = {main_.get()};
    if (short_ != nullptr) all.push_back(short_.get());
    return all;
  }

  std::size_t largest_scratch() const {
    std::size_t bytes = 0;
    for (const SessionProgram* variant : variants()) {
      for (std::size_t i = 0; i < variant->program().places().size(); ++i) {
        if (variant->program().places()[i].kind != DeviceKind::cpu) continue;
        bytes = std::max(bytes, variant->program().memory()[i].scratch_per_worker);
      }
    }
    return bytes;
  }

  /// Bytes at a location that its largest program needs, scratch not included; variables are counted there.
  std::size_t bytes_at(Location place) const {
    std::size_t bytes = 0;
    for (const SessionProgram* variant : variants()) {
      const Program& program = variant->program();
      for (std::size_t i = 0; i < program.places().size(); ++i) {
        const MemoryUse& use = program.memory()[i];
        if (program.places()[i] == place) bytes = std::max(bytes, use.variables + use.arena + use.slots);
      }
    }
    return bytes;
  }

  /// Bytes of the host's memory, or of all locations.
  std::size_t planned_bytes(bool host_only) const {
    std::size_t bytes = largest_scratch() * static_cast<std::size_t>(workers_);
    std::set<Location> places;
    for (const SessionProgram* program : variants()) {
      places.insert(program->program().places().begin(), program->program().places().end());
    }
    for (const Location& place : places) {
      if (!host_only || place.kind == DeviceKind::cpu) bytes += bytes_at(place);
    }
    return bytes;
  }

  Runtime& runtime_;
  Graph& graph_;
  const SessionOptions options_;
  const int exceptions_ = std::uncaught_exceptions();
  int workers_;
  std::int64_t samples_per_epoch_ = 0;
  std::int64_t batch_ = 0;
  std::map<std::string, Fill> fills_;  // by the input's path
  WaitMeter meter_;
  double next_notice_ = 0;                // seconds of waiting after which the host is told
  std::unique_ptr<DeviceMemory> memory_;  // of both programs: only one of them runs at a time
  std::vector<AlignedBuffer> scratch_;    // by worker
  std::unique_ptr<Graph> short_graph_;
  std::unique_ptr<SessionProgram> main_;
  std::unique_ptr<SessionProgram> short_;
  SchedulingChoice scheduling_;
  SessionProgram* active_ = nullptr;  // the one that may be running
  SessionProgram* failed_ = nullptr;
  std::int64_t next_ = 0;  // the first iteration that was not admitted
  std::int64_t seen_ = 0;  // the step that the loop is at
  RunEnd end_;
  Step step_;
};

double Step::value(Tensor tensor) const {
  const TensorInfo& info = tensor.info();
  if (info.shape.elements() != 1) {
    throw Error("step", "is " + info.text() + ", not a scalar", "read its elements with Step::values")
        .at(tensor.path());
  }
  const std::span<const std::byte> content = bytes(tensor);
  return with_dtype(info.dtype, [&](auto zero) {
    decltype(zero) value;
    std::memcpy(&value, content.data(), sizeof(value));
    return static_cast<double>(value);
  });
}

std::span<const float> Step::values(Tensor tensor) const {
  if (tensor.dtype() != DType::f32) {
    throw Error("step", "is " + tensor.info().text() + ", not f32").at(tensor.path());
  }
  const std::span<const std::byte> content = bytes(tensor);
  return {reinterpret_cast<const float*>(content.data()), content.size() / sizeof(float)};
}

bool Step::has(Tensor tensor) const {
  const std::vector<Tensor> watched = session_->implementation_->graph_.watched();
  return std::find(watched.begin(), watched.end(), tensor) != watched.end() &&
         tensor.location().rank == session_->implementation_->runtime_.rank();
}

std::span<const std::byte> Step::bytes(Tensor tensor) const {
  const std::vector<Tensor> watched = session_->implementation_->graph_.watched();
  const auto found = std::find(watched.begin(), watched.end(), tensor);
  if (found == watched.end()) {
    if (&tensor.graph() != &session_->implementation_->graph_) {
      throw Error("step", "belongs to another graph than the session runs",
                  "of a graph that was divided, parallel::Partitioned::at(tensor) gives the tensor that runs")
          .at(tensor.path());
    }
    throw Error("step", "is not watched, so the host has no value of it",
                "call graph.watch(tensor) before the session is made")
        .at(tensor.path());
  }
  if (!has(tensor)) {
    throw Error("step",
                "lies at " + tensor.location().text() + ", and this process is rank " +
                    std::to_string(session_->implementation_->runtime_.rank()),
                "read it where Step::has says that it is")
        .at(tensor.path());
  }
  return (*watched_)[static_cast<std::size_t>(found - watched.begin())];
}

Session::Session(Runtime& runtime, Graph& graph, SessionOptions options)
    : variables_(options.variables != nullptr ? options.variables : std::make_shared<Variables>()),
      implementation_(std::make_unique<Implementation>(runtime, graph, std::move(options), *variables_)) {
  implementation_->step_.session_ = this;
}

Session::~Session() = default;

Session::Steps Session::run(RunOptions options) {
  implementation_->begin(options);
  return Steps(this);
}

void Session::run_steps(std::int64_t steps) {
  for (const Step& step : run({.epochs = 0, .steps = steps})) static_cast<void>(step);
}

Session::Steps::Iterator Session::Steps::begin() {
  return Iterator(session_);
}

const Step& Session::Steps::Iterator::operator*() const {
  Implementation& implementation = *session_->implementation_;
  implementation.step_.watched_ =
      &implementation.variant_of(implementation.seen_).values(implementation.seen_);
  return implementation.step_;
}

Session::Steps::Iterator& Session::Steps::Iterator::operator++() {
  ++session_->implementation_->seen_;
  session_->implementation_->advance();
  return *this;
}

bool Session::Steps::Iterator::operator==(std::default_sentinel_t) const {
  return session_->implementation_->seen_ >= session_->implementation_->end_.end();
}

void Session::stop() {
  implementation_->stop();
}

void Session::drain() {
  implementation_->drain();
}

std::int64_t Session::iteration() const {
  return implementation_->next_;
}

void Session::set_iteration(std::int64_t iteration) {
  if (iteration < 0) throw Error("session", "iteration " + std::to_string(iteration) + " is negative");
  drain();
  implementation_->next_ = iteration;
}

std::int64_t Session::steps_per_epoch() const {
  return implementation_->steps_per_epoch();
}

std::int64_t Session::samples_per_epoch() const {
  return implementation_->samples_per_epoch_;
}

void Session::feed(Tensor input, Fill fill) {
  const std::vector<Tensor> inputs = implementation_->graph_.inputs();
  if (std::find(inputs.begin(), inputs.end(), input) == inputs.end()) {
    throw Error("session", "is no input of the session's graph", "feed what Graph::input returned");
  }
  drain();
  implementation_->fills_[input.path()] = std::move(fill);
}

const Program& Session::program() const {
  return implementation_->main_->program();
}

const SchedulingChoice& Session::scheduling() const {
  return implementation_->scheduling_;
}

std::size_t Session::peak_bytes() const {
  return implementation_->planned_bytes(false);
}

std::size_t Session::peak_bytes(Location location) const {
  return implementation_->bytes_at(location);
}

double Session::data_wait_share() {
  return implementation_->meter_.share();
}

}  // namespace purine
