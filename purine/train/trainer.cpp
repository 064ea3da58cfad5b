#include "purine/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "purine/io/atomic_file.h"
#include "purine/session/agreement.h"
#include "purine/session/iteration_error.h"
#include "purine/session/session.h"
#include "purine/train/compare_jobs.h"
#include "purine/train/evaluator.h"
#include "purine/train/graph_identity.h"
#include "purine/train/job_mistake.h"
#include "purine/train/metrics_log.h"
#include "purine/train/network.h"
#include "purine/train/notes.h"
#include "purine/train/parallel_section.h"
#include "purine/train/placed_graph.h"
#include "purine/train/rank_reports.h"
#include "purine/train/run_data.h"
#include "purine/train/run_description.h"
#include "purine/train/run_folder.h"
#include "purine/train/run_predictor.h"
#include "purine/train/run_store.h"
#include "purine/train/run_trace.h"
#include "purine/train/step_error.h"
#include "purine/train/step_sums.h"

namespace purine::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

std::int64_t next_multiple(std::int64_t value, std::int64_t of) {
  return (value / of + 1) * of;
}

}  // namespace

class Trainer::Implementation {
 public:
  Implementation(Runtime& runtime, LoadedJob job, TrainerOptions options);

  void add(Listener& listener) { listeners_.push_back(&listener); }
  EndReport run();

 private:
  template <typename... Arguments, typename... Given>
  void tell(void (Listener::*function)(Arguments...), const Given&... given) {
    for (Listener* listener : listeners_) (listener->*function)(given...);
  }

  const Job& job() const { return loaded_.job; }
  std::int64_t epoch_of(std::int64_t step) const { return step / data_.steps_per_epoch; }
  bool is_first() const { return runtime_.rank() == 0; }
  bool must_stop() const { return options_.stop.stop_requested(); }
  bool is_evaluated() const { return state_.is_evaluated(); }
  bool is_over() const { return state_.step >= data_.total_steps; }
  bool evaluation_is_due() const {
    return state_.step > 0 && (is_over() || is_due(job().train.evaluate_every));
  }

  void build_graph();
  void compare_ranks();
  void fit_memory(SessionOptions& options);
  void open_store();
  EndReport run_here();
  EndReport train();
  bool stops();
  void report_start();
  std::int64_t next_pause() const;
  void run_steps(std::int64_t end);
  void take_step(const Step& step, double seconds);
  void evaluate();
  void make_up_for_evaluation();
  void save();
  void write_trace(bool is_last);
  void pass_on_notes();
  void gather_notes();
  std::function<void(const RankWait&)> tell_of_wait();
  bool is_due(std::int64_t every_epochs) const;
  void tell_of_failure();
  void tell_other_ranks(const std::exception& error);
  std::function<void(const RanEvent&)> hook();
  void describe();
  BuildJob build_job() const;
  std::optional<RunPrediction> predict();
  EndReport end(RunEnd reason);

  Runtime& runtime_;
  LoadedJob loaded_;
  TrainerOptions options_;
  std::vector<Listener*> listeners_;

  Notes notes_;
  RunData data_;

  ParallelSetup setup_;
  std::optional<PlacedGraph> graph_;
  TrainingTensors tensors_;  // of the graph that runs
  GraphIdentity identity_;
  RunTrace trace_;  // outlives the session, which calls it
  RunPredictor predictor_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Evaluator> evaluator_;

  std::optional<RunStore> store_;
  std::optional<MetricsLog> log_;
  std::int64_t first_step_ = 0;  // steps done before this process
  bool has_started_ = false;
  RunState state_;
  StepSums sums_;
  trace::TransferUsage transfers_;  // in the training steps
};

Trainer::Implementation::Implementation(Runtime& runtime, LoadedJob job, TrainerOptions options)
    : runtime_(runtime),
      loaded_(std::move(job)),
      options_(std::move(options)),
      setup_(parallel_setup(loaded_, runtime.ranks())),
      trace_(loaded_.job, runtime),
      predictor_(runtime) {
  at_all_ranks(runtime.endpoint(), [this] {
    if (is_first() && !options_.resume && !options_.numbered_folder) {
      RunFolder::check_absent(this->job().train.run_folder);
    }
    data_ = open_data(this->job(), notes_);
    build_graph();
  });
  compare_ranks();
  SessionOptions session_options;
  session_options.seed = static_cast<std::uint64_t>(this->job().train.seed);
  session_options.scheduling = scheduling_of(this->job());
  session_options.waits = tell_of_wait();
  session_options.notice_after = notice_after(this->job().parallel.stall_limit);
  session_options.trace = hook();
  fit_memory(session_options);
  session_ = std::make_unique<Session>(runtime, graph_->running(), std::move(session_options));
  evaluator_ = std::make_unique<Evaluator>(
      runtime, setup_, data_.task, data_.test_set,
      Evaluator::Options{&*graph_, session_->shared_variables(), data_.skipped, tell_of_wait()});
}

// All ranks have the same job, and data sets of the same content, wherever those lie.
void Trainer::Implementation::compare_ranks() {
  Endpoint* endpoint = runtime_.endpoint();
  if (endpoint == nullptr) return;
  compare_jobs(*endpoint, job());
  compare_data(*endpoint, data_);
}

void Trainer::Implementation::build_graph() {
  const PlacedGraph::Build build = [this](Graph& graph, Location device) {
    tensors_ = build_training(training_source(graph, job(), data_.training_set, data_.skipped), job(),
                              data_.task.classes, data_.steps_per_epoch, device);
  };
  graph_.emplace(setup_, build);
  identity_ = identify(graph_->written());
}

// A collective call.
void Trainer::Implementation::fit_memory(SessionOptions& options) {
  if (job().train.memory_limit > 0) {
    graph_->fit_memory(runtime_, static_cast<std::size_t>(job().train.memory_limit * 1e6), options);
  }
  for (Tensor* tensor : {&tensors_.loss, &tensors_.accuracy, &tensors_.learning_rate}) {
    *tensor = graph_->at(*tensor);
  }
}

EndReport Trainer::Implementation::run() {
  try {
    return run_here();
  } catch (const RemoteError& error) {
    tell_of_failure();
    throw has_started_ ? step_error(error, state_.step) : error;
  } catch (const IterationError& error) {
    tell_of_failure();
    const Error step = step_error(error);
    tell_other_ranks(step);
    throw step;
  } catch (const std::exception& error) {
    tell_of_failure();
    tell_other_ranks(error);
    throw;
  }
}

EndReport Trainer::Implementation::run_here() {
  open_store();
  const bool is_complete = is_over() && is_evaluated();
  at_all_ranks(runtime_.endpoint(), [&] {
    if (!is_first()) return;
    io::write_file(store_->paths().job(), job_text(job()));
    if (is_complete) return;
    std::optional<MetricsLog::Resumption> resumption;
    if (options_.resume) resumption = {.step = state_.step, .evaluated = is_evaluated()};
    log_.emplace(store_->paths(), resumption, [this](std::string_view text) { tell(&Listener::note, text); });
    listeners_.push_back(&*log_);
  });
  report_start();
  has_started_ = true;
  describe();
  trace_.compare_clocks(runtime_);
  return is_complete ? end(RunEnd::finished) : train();
}

EndReport Trainer::Implementation::train() {
  make_up_for_evaluation();
  while (!is_over()) {
    if (stops()) {
      save();
      return end(RunEnd::interrupted);
    }
    if (options_.stop_after > 0 && state_.step >= options_.stop_after) return end(RunEnd::stopped);
    run_steps(next_pause());
    if (state_.step % data_.steps_per_epoch == 0) {
      tell(&Listener::epoch, sums_.finish_epoch(state_.step, epoch_of(state_.step - 1)));
    }
    if (evaluation_is_due() && !stops()) evaluate();
    const std::int64_t every_steps = job().checkpoint.every_steps;
    if (is_over() || state_.step == options_.stop_after || is_due(job().checkpoint.every_epochs) ||
        (every_steps > 0 && state_.step % every_steps == 0)) {
      save();
    }
    if (state_.step % data_.steps_per_epoch == 0) sums_.set_epoch({});
  }
  return end(is_evaluated() ? RunEnd::finished : RunEnd::interrupted);
}

// True if any rank was asked to stop. A collective call.
bool Trainer::Implementation::stops() {
  Endpoint* endpoint = runtime_.endpoint();
  if (endpoint == nullptr) return must_stop();
  const std::vector<std::string> all = endpoint->all_gather(must_stop() ? "stop" : "go on");
  return std::find(all.begin(), all.end(), "stop") != all.end();
}

// A run that was stopped between the last step of an epoch and the end of its evaluation has a checkpoint
// that doesn't know how good it is.
void Trainer::Implementation::make_up_for_evaluation() {
  if (!evaluation_is_due() || is_evaluated() || stops()) return;
  evaluate();
  if (is_evaluated()) save();
}

// What can still be said of a run that an error ends. What fails here as well comes second to that error.
void Trainer::Implementation::tell_of_failure() {
  if (!has_started_) return;
  try {
    pass_on_notes();
    if (!store_->checkpoint().empty()) {
      tell(&Listener::note,
           fmt::format("the run failed; its newest checkpoint is {}", store_->checkpoint().string()));
    }
    if (is_first()) trace_.write_alone(store_->paths(), first_step_);
  } catch (const std::exception&) {
    return;
  }
}

void Trainer::Implementation::tell_other_ranks(const std::exception& error) {
  Endpoint* endpoint = runtime_.endpoint();
  if (endpoint != nullptr) endpoint->fail("at " + endpoint->host(endpoint->rank()) + ", " + error.what());
}

void Trainer::Implementation::open_store() {
  const RunStore::Folder folder = options_.resume            ? RunStore::Folder::open
                                  : options_.numbered_folder ? RunStore::Folder::make_numbered
                                                             : RunStore::Folder::make;
  const RunStore::Subject subject{data_.task, data_.training_set->fingerprint(), identity_,
                                  graph_->variables(), data_.steps_per_epoch};
  store_.emplace(runtime_, loaded_, subject, folder);
  loaded_.job.train.run_folder = store_->paths().folder.string();
  if (!options_.resume) return;
  const std::optional<RunState> state = store_->load(session_->variables());
  if (!state) {
    tell(&Listener::note, std::string("there is no checkpoint yet, the run starts at its beginning"));
    return;
  }
  state_ = *state;
  first_step_ = state_.step;
  sums_.set_epoch(state_.sums);
  session_->set_iteration(state_.step);
}

void Trainer::Implementation::report_start() {
  RunReport report;
  report.job = job();
  report.paths = store_->paths();
  report.title = store_->paths().folder.filename().string();
  report.parameters = parameter_count(graph_->written());
  report.training_images = data_.training_set->size();
  report.test_images = data_.test_set->size();
  report.classes = data_.task.classes;
  report.channels = data_.task.image.channels;
  report.height = data_.task.image.height;
  report.width = data_.task.image.width;
  report.steps_per_epoch = data_.steps_per_epoch;
  report.first_step = first_step_;
  report.steps = data_.total_steps;
  report.devices = setup_.devices();
  report.scheme = std::string(setup_.scheme->name);
  report.placement = setup_.text();
  report.workers = runtime_.workers();
  report.scheduling = report_scheduling(*session_, runtime_, loaded_, build_job());
  report.step_bytes = session_->peak_bytes();
  report.peak_bytes = report.step_bytes + evaluator_->session().peak_bytes() - evaluator_->shared_bytes();
  tell(&Listener::started, report);
  if (const std::string note = graph_->memory_text(); !note.empty()) tell(&Listener::note, note);
  for (const std::string& note : notes_at_start(job(), data_, state_.step)) tell(&Listener::note, note);
}

// The step at which something is to be done that needs all steps before it to be finished: the end of an
// epoch, a checkpoint, the end.
std::int64_t Trainer::Implementation::next_pause() const {
  std::int64_t pause = std::min(data_.total_steps, next_multiple(state_.step, data_.steps_per_epoch));
  if (job().checkpoint.every_steps > 0) {
    pause = std::min(pause, next_multiple(state_.step, job().checkpoint.every_steps));
  }
  if (trace_.end() > state_.step) pause = std::min(pause, trace_.end());
  if (options_.stop_after > state_.step) pause = std::min(pause, options_.stop_after);
  return pause;
}

void Trainer::Implementation::run_steps(std::int64_t end) {
  session_->data_wait_share();
  if (runtime_.transfer_meter() != nullptr) runtime_.transfer_meter()->reset();
  Clock::time_point last = Clock::now();
  for (const Step& step : session_->run({.steps = end - state_.step})) {
    const Clock::time_point now = Clock::now();
    take_step(step, seconds_between(last, now));
    last = now;
    if (must_stop()) session_->stop();
  }
  session_->drain();
  if (runtime_.transfer_meter() != nullptr) transfers_ += runtime_.transfer_meter()->usage();
  gather_notes();
  write_trace(false);
}

void Trainer::Implementation::take_step(const Step& step, double seconds) {
  state_.step = step.index + 1;
  if (!is_first()) return;
  StepReport report;
  report.step = state_.step;
  report.epoch = step.epoch;
  report.samples = step.samples;
  report.loss = step.value(tensors_.loss);
  report.accuracy = step.value(tensors_.accuracy);
  report.learning_rate = step.value(tensors_.learning_rate);
  report.seconds = seconds;
  report.wait_seconds = session_->data_wait_share() * seconds;
  sums_.add(report);
  pass_on_notes();
  tell(&Listener::step, report);
  if (state_.step % job().train.report_every == 0 || is_over()) {
    tell(&Listener::progress, sums_.take_progress(report, data_.total_steps));
  }
}

bool Trainer::Implementation::is_due(std::int64_t every_epochs) const {
  return every_epochs > 0 && state_.step % (every_epochs * data_.steps_per_epoch) == 0;
}

void Trainer::Implementation::evaluate() {
  state_.evaluation = evaluator_->run(state_.step, epoch_of(state_.step - 1), options_.stop);
  pass_on_notes();
  gather_notes();
  if (state_.evaluation) tell(&Listener::evaluated, *state_.evaluation);
}

void Trainer::Implementation::save() {
  state_.sums = sums_.epoch();
  if (store_->save(state_, session_->variables())) {
    tell(&Listener::saved, store_->checkpoint(), state_.step);
  }
}

void Trainer::Implementation::write_trace(bool is_last) {
  const std::optional<std::string> note =
      trace_.write(runtime_, store_->paths(), {first_step_, state_.step, is_last});
  if (note) tell(&Listener::note, *note);
}

void Trainer::Implementation::pass_on_notes() {
  for (const std::string& text : notes_.take(runtime_)) tell(&Listener::note, text);
}

// Those of the other ranks can only be about images that are left out.
void Trainer::Implementation::gather_notes() {
  if (runtime_.ranks() == 1 || job().data.on_bad_image != "skip") return;
  for (const std::string& text : notes_.gather(runtime_)) tell(&Listener::note, text);
}

std::function<void(const RankWait&)> Trainer::Implementation::tell_of_wait() {
  return [this](const RankWait& wait) {
    const std::string text = wait_text(wait.rank, runtime_.endpoint()->host(wait.rank), wait.seconds);
    tell(&Listener::note, wait.tensor.empty() ? text : fmt::format("{}, to send {}", text, wait.tensor));
  };
}

// What is traced, and what the run is judged by.
std::function<void(const RanEvent&)> Trainer::Implementation::hook() {
  std::function<void(const RanEvent&)> traced = trace_.hook();
  std::function<void(const RanEvent&)> measured = predictor_.hook();
  if (!traced || !measured) return traced ? traced : measured;
  return [traced = std::move(traced), measured = std::move(measured)](const RanEvent& event) {
    traced(event);
    measured(event);
  };
}

void Trainer::Implementation::describe() {
  if (!predictor_.measures() && trace_.end() == 0) return;
  const trace::RunDescription run =
      describe_run(runtime_, setup_, data_.task.image, data_.task.classes, options_.links);
  trace_.describe(run);
  predictor_.begin(run, state_.step);
}

BuildJob Trainer::Implementation::build_job() const {
  return [this](const Job& job, Graph& graph, Location device) {
    build_training(training_source(graph, job, data_.training_set), job, data_.task.classes,
                   data_.steps_per_epoch, device);
  };
}

std::optional<RunPrediction> Trainer::Implementation::predict() {
  if (state_.step == first_step_) return std::nullopt;
  // At rank 0, which alone counts them.
  const double images = static_cast<double>(std::max<std::int64_t>(sums_.trained_images(), 1));
  return predictor_.predict(runtime_, build_job(),
                            sums_.training_seconds() * static_cast<double>(job().data.batch) / images);
}

EndReport Trainer::Implementation::end(RunEnd reason) {
  write_trace(true);
  EndReport report;
  report.end = reason;
  report.paths = store_->paths();
  report.step = state_.step;
  report.trained_steps = state_.step - first_step_;
  report.epochs = epoch_of(state_.step);
  if (reason == RunEnd::finished) report.test = state_.evaluation;
  report.checkpoint = store_->checkpoint();
  std::error_code error;
  report.trace_error = trace_.error();
  if (trace_.path() || (!trace_.error() && std::filesystem::exists(report.paths.trace(), error))) {
    report.trace = trace_.path().value_or(report.paths.trace());
  }
  if (Endpoint* endpoint = runtime_.endpoint()) {
    report.ranks = gather_rank_reports(*endpoint, transfers_);
  }
  if (log_) {
    log_->flush();
    report.metrics_error = log_->metrics_error();
    report.events_error = log_->events_error();
  }
  report.prediction = predict();
  report.skipped_images = static_cast<std::int64_t>(gather_skipped(runtime_, job(), *data_.skipped).size());
  report.training_seconds = sums_.training_seconds();
  report.trained_images = sums_.trained_images();
  report.devices = static_cast<int>(setup_.devices().size());
  report.placement = setup_.text();
  tell(&Listener::ended, report);
  return report;
}

Trainer::Trainer(Runtime& runtime, const LoadedJob& job, TrainerOptions options)
    : implementation_(locating_mistakes(
          job, [&] { return std::make_unique<Implementation>(runtime, job, std::move(options)); })) {}

Trainer::~Trainer() = default;

void Trainer::add(Listener& listener) {
  implementation_->add(listener);
}

EndReport Trainer::run() {
  return implementation_->run();
}

}  // namespace purine::train
