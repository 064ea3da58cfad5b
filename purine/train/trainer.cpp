#include "purine/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "purine/io/atomic_file.h"
#include "purine/io/checkpoint.h"
#include "purine/session/iteration_error.h"
#include "purine/session/session.h"
#include "purine/session/whole_values.h"
#include "purine/train/checkpoints.h"
#include "purine/train/evaluator.h"
#include "purine/train/graph_identity.h"
#include "purine/train/job_mistake.h"
#include "purine/train/metrics_log.h"
#include "purine/train/network.h"
#include "purine/train/parallel_section.h"
#include "purine/train/placed_graph.h"
#include "purine/train/run_folder.h"
#include "purine/train/state.h"
#include "purine/train/step_error.h"
#include "purine/train/step_trace.h"

namespace purine::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

std::int64_t next_multiple(std::int64_t value, std::int64_t of) {
  return (value / of + 1) * of;
}

// Notes that workers leave for the thread that trains.
class Notes {
 public:
  void add(std::string text) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(std::move(text));
  }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(texts_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

// Means over the steps since the last progress report.
struct Interval {
  double loss = 0;
  double correct = 0;
  double samples = 0;
  double seconds = 0;
  double wait_seconds = 0;
  double steps = 0;
};

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
  std::int64_t epoch_of(std::int64_t step) const { return step / steps_per_epoch_; }
  bool must_stop() const { return options_.stop.stop_requested(); }
  bool is_evaluated() const { return evaluation_ && evaluation_->step == step_; }
  bool is_over() const { return step_ >= total_steps_; }
  bool evaluation_is_due() const { return step_ > 0 && (is_over() || is_due(job().train.evaluate_every)); }

  void build_graph();
  void open_folder();
  void resume_from_checkpoint();
  EndReport train();
  void report_start();
  std::size_t shared_bytes() const;
  std::int64_t next_pause() const;
  void run_steps(std::int64_t end);
  void take_step(const Step& step, double seconds);
  void report_progress(double learning_rate);
  void finish_epoch();
  void evaluate();
  void make_up_for_evaluation();
  void save();
  void write_trace(bool at_end);
  void pass_on_notes();
  bool is_due(std::int64_t every_epochs) const;
  void tell_of_failure();
  EndReport end(RunEnd reason);

  Runtime& runtime_;
  LoadedJob loaded_;
  TrainerOptions options_;
  std::vector<Listener*> listeners_;

  data::DatasetPtr training_set_;
  data::DatasetPtr test_set_;
  std::shared_ptr<data::SkippedImages> skipped_;
  Notes notes_;
  Task task_;
  std::int64_t steps_per_epoch_ = 0;
  std::int64_t total_steps_ = 0;

  ParallelSetup setup_;
  std::optional<PlacedGraph> graph_;
  TrainingTensors tensors_;  // of the graph that runs
  GraphIdentity identity_;
  std::optional<StepTrace> trace_;                   // outlives the session, which calls it
  std::optional<std::filesystem::path> trace_path_;  // once it is written
  std::unique_ptr<Session> session_;
  std::unique_ptr<Evaluator> evaluator_;

  std::optional<RunFolder> folder_;
  std::optional<MetricsLog> log_;
  bool resumed_ = false;
  std::int64_t first_step_ = 0;  // steps done before this process
  std::int64_t step_ = 0;        // steps done
  EpochSums epoch_sums_;
  double epoch_seconds_ = 0;
  double training_seconds_ = 0;
  std::int64_t trained_images_ = 0;
  Interval interval_;
  std::optional<EvaluationReport> evaluation_;  // the last one
  std::filesystem::path checkpoint_;
  std::int64_t saved_step_ = -1;
  bool saved_evaluation_ = false;  // in the checkpoint of that step
};

Trainer::Implementation::Implementation(Runtime& runtime, LoadedJob job, TrainerOptions options)
    : runtime_(runtime),
      loaded_(std::move(job)),
      options_(std::move(options)),
      setup_(parallel_setup(loaded_)) {
  const std::filesystem::path folder = loaded_.job.train.run_folder;
  if (!options_.resume && !options_.numbered_folder) RunFolder::check_absent(folder);

  training_set_ = open_dataset(this->job(), data::Subset::train);
  test_set_ = open_dataset(this->job(), data::Subset::test);
  skipped_ = std::make_shared<data::SkippedImages>([this](const data::SkippedImages::Entry& entry) {
    notes_.add(fmt::format("left out {}: {}", entry.path, entry.reason));
  });
  task_ = find_task(this->job(), *training_set_);
  steps_per_epoch_ = steps_per_epoch(this->job(), training_set_->size());
  total_steps_ = total_steps(this->job(), steps_per_epoch_);

  build_graph();
  SessionOptions session_options;
  session_options.seed = static_cast<std::uint64_t>(this->job().train.seed);
  if (const Job::Trace& trace = this->job().trace; trace.steps > 0) {
    trace_.emplace(trace.first_step, trace.first_step + trace.steps, trace.megabytes, runtime);
    session_options.trace = trace_->hook();
  }
  session_ = std::make_unique<Session>(runtime, graph_->running(), std::move(session_options));
  evaluator_ =
      std::make_unique<Evaluator>(runtime, setup_, task_, test_set_,
                                  Evaluator::Options{&*graph_, session_->shared_variables(), skipped_});
}

void Trainer::Implementation::build_graph() {
  const PlacedGraph::Build build = [this](Graph& graph, Location device) {
    tensors_ = build_training(training_source(graph, job(), training_set_, skipped_), job(), task_.classes,
                              steps_per_epoch_, device);
  };
  graph_.emplace(setup_, build);
  identity_ = identify(graph_->written());
  for (Tensor* tensor : {&tensors_.loss, &tensors_.accuracy, &tensors_.learning_rate}) {
    *tensor = graph_->at(*tensor);
  }
}

EndReport Trainer::Implementation::run() {
  open_folder();
  if (resumed_) resume_from_checkpoint();
  io::write_file(folder_->paths().job(), job_text(job()));
  const bool is_complete = is_over() && is_evaluated();
  if (!is_complete) {
    std::optional<MetricsLog::Resumption> resumption;
    if (resumed_) resumption = {.step = step_, .evaluated = is_evaluated()};
    log_.emplace(folder_->paths(), resumption);
    listeners_.push_back(&*log_);
  }
  report_start();
  try {
    return is_complete ? end(RunEnd::finished) : train();
  } catch (const IterationError& error) {
    tell_of_failure();
    throw step_error(error);
  } catch (const Error&) {
    tell_of_failure();
    throw;
  }
}

EndReport Trainer::Implementation::train() {
  make_up_for_evaluation();
  while (!is_over()) {
    if (must_stop()) {
      save();
      return end(RunEnd::interrupted);
    }
    if (options_.stop_after > 0 && step_ >= options_.stop_after) return end(RunEnd::stopped);
    run_steps(next_pause());
    if (step_ % steps_per_epoch_ == 0) finish_epoch();
    if (evaluation_is_due() && !must_stop()) evaluate();
    const std::int64_t every_steps = job().checkpoint.every_steps;
    if (is_over() || step_ == options_.stop_after || is_due(job().checkpoint.every_epochs) ||
        (every_steps > 0 && step_ % every_steps == 0)) {
      save();
    }
    if (step_ % steps_per_epoch_ == 0) epoch_sums_ = {};
  }
  return end(is_evaluated() ? RunEnd::finished : RunEnd::interrupted);
}

// A run that was stopped between the last step of an epoch and the end of its evaluation has a checkpoint
// that doesn't know how good it is.
void Trainer::Implementation::make_up_for_evaluation() {
  if (!evaluation_is_due() || is_evaluated() || must_stop()) return;
  evaluate();
  if (is_evaluated()) save();
}

// What can still be said of a run that an error ends. What fails here as well comes second to that error.
void Trainer::Implementation::tell_of_failure() {
  try {
    pass_on_notes();
    if (!checkpoint_.empty()) {
      tell(&Listener::note, fmt::format("the run failed; its newest checkpoint is {}", checkpoint_.string()));
    }
    write_trace(true);
  } catch (const std::exception&) {
    return;
  }
}

void Trainer::Implementation::open_folder() {
  const std::filesystem::path path = job().train.run_folder;
  if (options_.resume) {
    folder_.emplace(RunFolder::open(path));
    resumed_ = true;
  } else if (options_.numbered_folder) {
    folder_.emplace(RunFolder::create_numbered(path));
    loaded_.job.train.run_folder = folder_->paths().folder.string();
  } else {
    folder_.emplace(RunFolder::create(path));
  }
}

void Trainer::Implementation::resume_from_checkpoint() {
  const std::filesystem::path checkpoints = folder_->paths().checkpoints();
  if (io::list_checkpoints(checkpoints).empty()) {
    tell(&Listener::note, std::string("there is no checkpoint yet, the run starts at its beginning"));
    return;
  }
  io::LatestCheckpoint latest = io::load_latest_checkpoint(checkpoints);
  const io::Manifest& manifest = latest.checkpoint.manifest;
  check_resumable(manifest, latest.path, loaded_, training_set_->fingerprint(), identity_);
  evaluation_ = evaluation_of(manifest, latest.path);
  epoch_sums_ = epoch_sums_of(manifest, latest.path);
  try {
    set_values(graph_->variables(), session_->variables(), latest.checkpoint.tensors, false);
  } catch (const Error& error) {
    throw error.at(latest.path.string());
  }
  session_->set_iteration(manifest.iteration);
  step_ = first_step_ = saved_step_ = manifest.iteration;
  saved_evaluation_ = is_evaluated();
  checkpoint_ = latest.path;
}

void Trainer::Implementation::report_start() {
  RunReport report;
  report.job = job();
  report.paths = folder_->paths();
  report.title = folder_->paths().folder.filename().string();
  report.parameters = parameter_count(graph_->written());
  report.training_images = training_set_->size();
  report.test_images = test_set_->size();
  report.classes = task_.classes;
  report.channels = task_.image.channels;
  report.height = task_.image.height;
  report.width = task_.image.width;
  report.steps_per_epoch = steps_per_epoch_;
  report.first_step = first_step_;
  report.steps = total_steps_;
  report.devices = setup_.devices();
  report.scheme = std::string(setup_.scheme->name);
  report.placement = setup_.text();
  report.workers = runtime_.workers();
  report.peak_bytes = session_->peak_bytes() + evaluator_->session().peak_bytes() - shared_bytes();
  tell(&Listener::started, report);
  const Job::Trace& trace = job().trace;
  if (trace.steps > 0 && trace.first_step >= total_steps_) {
    tell(&Listener::note,
         fmt::format("no step will be traced: trace.first_step is {}, and the run ends after "
                     "{} steps",
                     trace.first_step, total_steps_));
  }
  if (is_over()) {
    // A learning rate that falls over the whole run has none left for more.
    const std::string& schedule = job().optimizer.schedule;
    const bool may_go_on = schedule == "constant" || schedule == "step";
    tell(&Listener::note,
         fmt::format("the run is complete: all of its {} steps were done before, and nothing is left to "
                     "train{}",
                     step_, may_go_on ? "; more train.epochs or train.steps go on" : ""));
  }
}

// What the evaluation's graph has in common with the training's: the variables, without the optimiser's.
std::size_t Trainer::Implementation::shared_bytes() const {
  std::size_t bytes = 0;
  if (!evaluator_->shares_variables()) return bytes;
  for (const Variable& variable : evaluator_->graph().running().variables()) bytes += variable.info().bytes();
  return bytes;
}

// The step at which something is to be done that needs all steps before it to be finished: the end of an
// epoch, a checkpoint, the end.
std::int64_t Trainer::Implementation::next_pause() const {
  std::int64_t pause = std::min(total_steps_, next_multiple(step_, steps_per_epoch_));
  if (job().checkpoint.every_steps > 0) {
    pause = std::min(pause, next_multiple(step_, job().checkpoint.every_steps));
  }
  if (trace_ && trace_->end() > step_) pause = std::min(pause, trace_->end());
  if (options_.stop_after > step_) pause = std::min(pause, options_.stop_after);
  return pause;
}

void Trainer::Implementation::run_steps(std::int64_t end) {
  session_->data_wait_share();
  Clock::time_point last = Clock::now();
  for (const Step& step : session_->run({.steps = end - step_})) {
    const Clock::time_point now = Clock::now();
    take_step(step, seconds_between(last, now));
    last = now;
    if (must_stop()) session_->stop();
  }
  session_->drain();
  write_trace(false);
}

void Trainer::Implementation::take_step(const Step& step, double seconds) {
  step_ = step.index + 1;
  const auto samples = static_cast<double>(step.samples);
  StepReport report;
  report.step = step_;
  report.epoch = step.epoch;
  report.samples = step.samples;
  report.loss = step.value(tensors_.loss);
  report.accuracy = step.value(tensors_.accuracy);
  report.learning_rate = step.value(tensors_.learning_rate);
  report.seconds = seconds;
  report.wait_seconds = session_->data_wait_share() * seconds;

  epoch_sums_.loss += report.loss * samples;
  epoch_sums_.correct += report.accuracy * samples;
  epoch_sums_.samples += step.samples;
  epoch_seconds_ += seconds;
  training_seconds_ += seconds;
  trained_images_ += step.samples;
  interval_.loss += report.loss * samples;
  interval_.correct += report.accuracy * samples;
  interval_.samples += samples;
  interval_.seconds += seconds;
  interval_.wait_seconds += report.wait_seconds;
  interval_.steps += 1;

  pass_on_notes();
  tell(&Listener::step, report);
  if (step_ % job().train.report_every == 0 || step_ == total_steps_) report_progress(report.learning_rate);
}

void Trainer::Implementation::report_progress(double learning_rate) {
  const Interval sums = std::exchange(interval_, {});
  ProgressReport report;
  report.step = step_;
  report.epoch = epoch_of(step_ - 1);
  report.loss = sums.loss / sums.samples;
  report.accuracy = sums.correct / sums.samples;
  report.learning_rate = learning_rate;
  report.images_per_second = sums.samples / sums.seconds;
  report.wait_share = sums.wait_seconds / sums.seconds;
  report.seconds_left = sums.seconds / sums.steps * static_cast<double>(total_steps_ - step_);
  tell(&Listener::progress, report);
}

void Trainer::Implementation::finish_epoch() {
  const auto samples = static_cast<double>(epoch_sums_.samples);
  EpochReport report;
  report.step = step_;
  report.epoch = epoch_of(step_ - 1);
  report.loss = epoch_sums_.loss / samples;
  report.accuracy = epoch_sums_.correct / samples;
  report.seconds = std::exchange(epoch_seconds_, 0);
  tell(&Listener::epoch, report);
}

bool Trainer::Implementation::is_due(std::int64_t every_epochs) const {
  return every_epochs > 0 && step_ % (every_epochs * steps_per_epoch_) == 0;
}

void Trainer::Implementation::evaluate() {
  evaluation_ = evaluator_->run(step_, epoch_of(step_ - 1), options_.stop);
  pass_on_notes();
  if (evaluation_) tell(&Listener::evaluated, *evaluation_);
}

void Trainer::Implementation::save() {
  if (saved_step_ == step_ && saved_evaluation_ == is_evaluated()) return;
  const bool epoch_is_over = step_ % steps_per_epoch_ == 0;
  const EpochSums sums = epoch_is_over ? EpochSums{} : epoch_sums_;
  io::Checkpoint checkpoint;
  checkpoint.manifest = make_manifest(job(), task_, sums, training_set_->fingerprint(), identity_);
  checkpoint.manifest.iteration = step_;
  checkpoint.manifest.epoch = epoch_of(step_);
  checkpoint.manifest.position = sums.samples;
  if (is_evaluated()) set_evaluation(checkpoint.manifest, *evaluation_);
  checkpoint.tensors = whole_values(graph_->variables(), session_->variables());
  checkpoint_ = io::save_checkpoint(
      folder_->paths().checkpoints(), checkpoint,
      {.last = static_cast<int>(job().checkpoint.keep), .best = job().checkpoint.keep_best});
  saved_step_ = step_;
  saved_evaluation_ = is_evaluated();
  tell(&Listener::saved, checkpoint_, step_);
}

void Trainer::Implementation::write_trace(bool at_end) {
  if (!trace_ || trace_path_ || !trace_->has_events()) return;
  if (step_ < trace_->end() && !at_end) return;
  trace_path_ = folder_->paths().free_trace(first_step_);
  trace_->write(*trace_path_);
}

void Trainer::Implementation::pass_on_notes() {
  for (const std::string& text : notes_.take()) tell(&Listener::note, text);
}

EndReport Trainer::Implementation::end(RunEnd reason) {
  write_trace(true);
  EndReport report;
  report.end = reason;
  report.paths = folder_->paths();
  report.step = step_;
  report.trained_steps = step_ - first_step_;
  report.epochs = epoch_of(step_);
  if (reason == RunEnd::finished) report.test = evaluation_;
  report.checkpoint = checkpoint_;
  std::error_code error;
  if (trace_path_ || std::filesystem::exists(report.paths.trace(), error)) {
    report.trace = trace_path_.value_or(report.paths.trace());
  }
  report.skipped_images = skipped_->count();
  report.training_seconds = training_seconds_;
  report.trained_images = trained_images_;
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
