#include "purine/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "purine/core/random.h"
#include "purine/io/atomic_file.h"
#include "purine/io/checkpoint.h"
#include "purine/session/session.h"
#include "purine/train/checkpoints.h"
#include "purine/train/evaluator.h"
#include "purine/train/metrics_log.h"
#include "purine/train/network.h"
#include "purine/train/run_folder.h"
#include "purine/train/state.h"
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

  void open_folder();
  void resume_from_checkpoint();
  void report_start();
  std::size_t shared_bytes() const;
  std::int64_t next_pause() const;
  void run_steps(std::int64_t end);
  void take_step(const Step& step, double seconds);
  void report_progress(double learning_rate);
  void finish_epoch();
  void evaluate();
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

  Graph graph_;
  TrainingTensors tensors_;
  std::uint64_t graph_hash_ = 0;
  std::optional<StepTrace> trace_;  // outlives the session, which calls it
  bool trace_is_written_ = false;
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
  Interval interval_;
  std::optional<EvaluationReport> evaluation_;  // the last one
  std::filesystem::path checkpoint_;
  std::int64_t saved_step_ = -1;
};

Trainer::Implementation::Implementation(Runtime& runtime, LoadedJob job, TrainerOptions options)
    : runtime_(runtime), loaded_(std::move(job)), options_(std::move(options)) {
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

  tensors_ = build_training(training_source(graph_, this->job(), training_set_, skipped_), this->job(),
                            task_.classes, steps_per_epoch_, options_.device);
  graph_hash_ = hash_text(dump(graph_));
  SessionOptions session_options;
  session_options.seed = static_cast<std::uint64_t>(this->job().train.seed);
  if (const Job::Trace& trace = this->job().trace; trace.steps > 0) {
    trace_.emplace(trace.first_step, trace.first_step + trace.steps, trace.megabytes, runtime);
    session_options.trace = trace_->hook();
  }
  session_ = std::make_unique<Session>(runtime, graph_, std::move(session_options));
  evaluator_ = std::make_unique<Evaluator>(runtime, this->job(), task_, test_set_, options_.device,
                                           session_->shared_variables(), skipped_);
}

EndReport Trainer::Implementation::run() {
  open_folder();
  if (resumed_) resume_from_checkpoint();
  io::write_file(folder_->paths().job(), job_text(job()));
  log_.emplace(folder_->paths(), resumed_ ? std::optional(step_) : std::nullopt);
  listeners_.push_back(&*log_);
  report_start();

  try {
    while (step_ < total_steps_) {
      if (options_.stop_after > 0 && step_ >= options_.stop_after) return end(RunEnd::stopped);
      run_steps(next_pause());
      const bool at_end = step_ == total_steps_;
      if (step_ % steps_per_epoch_ == 0) finish_epoch();
      const bool evaluates = at_end || is_due(job().train.evaluate_every);
      if (evaluates && !must_stop()) evaluate();
      const std::int64_t every_steps = job().checkpoint.every_steps;
      if (at_end || must_stop() || step_ == options_.stop_after || is_due(job().checkpoint.every_epochs) ||
          (every_steps > 0 && step_ % every_steps == 0)) {
        save();
      }
      if (step_ % steps_per_epoch_ == 0) epoch_sums_ = {};
      if (must_stop() && !(at_end && is_evaluated())) return end(RunEnd::interrupted);
    }
    if (!is_evaluated()) evaluate();  // a run that is resumed though it was done
    return end(is_evaluated() ? RunEnd::finished : RunEnd::interrupted);
  } catch (const Error&) {
    tell_of_failure();
    throw;
  }
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
  check_resumable(manifest, latest.path, loaded_, training_set_->fingerprint(), graph_hash_);
  epoch_sums_ = epoch_sums_of(manifest, latest.path);
  try {
    set_values(graph_, session_->variables(), latest.checkpoint.tensors, false);
  } catch (const Error& error) {
    throw error.at(latest.path.string());
  }
  session_->set_iteration(manifest.iteration);
  step_ = first_step_ = saved_step_ = manifest.iteration;
  checkpoint_ = latest.path;
}

void Trainer::Implementation::report_start() {
  RunReport report;
  report.job = job();
  report.paths = folder_->paths();
  report.title = folder_->paths().folder.filename().string();
  report.parameters = parameter_count(graph_);
  report.training_images = training_set_->size();
  report.test_images = test_set_->size();
  report.classes = task_.classes;
  report.channels = task_.image.channels;
  report.height = task_.image.height;
  report.width = task_.image.width;
  report.steps_per_epoch = steps_per_epoch_;
  report.first_step = first_step_;
  report.steps = total_steps_;
  report.workers = runtime_.workers();
  report.peak_bytes = session_->peak_bytes() + evaluator_->session().peak_bytes() - shared_bytes();
  tell(&Listener::started, report);
}

// What the evaluation's graph has in common with the training's: the variables, without the optimiser's.
std::size_t Trainer::Implementation::shared_bytes() const {
  std::size_t bytes = 0;
  for (const Variable& variable : evaluator_->graph().variables()) bytes += variable.info().bytes();
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
  if (saved_step_ == step_) return;
  const bool epoch_is_over = step_ % steps_per_epoch_ == 0;
  const EpochSums sums = epoch_is_over ? EpochSums{} : epoch_sums_;
  io::Checkpoint checkpoint;
  checkpoint.manifest = make_manifest(job(), task_, sums, training_set_->fingerprint(), graph_hash_);
  checkpoint.manifest.iteration = step_;
  checkpoint.manifest.epoch = epoch_of(step_);
  checkpoint.manifest.position = sums.samples;
  if (is_evaluated()) checkpoint.manifest.score = evaluation_->accuracy;
  checkpoint.tensors = session_->variables().values();
  checkpoint_ = io::save_checkpoint(
      folder_->paths().checkpoints(), checkpoint,
      {.last = static_cast<int>(job().checkpoint.keep), .best = job().checkpoint.keep_best});
  saved_step_ = step_;
  tell(&Listener::saved, checkpoint_, step_);
}

void Trainer::Implementation::write_trace(bool at_end) {
  if (!trace_ || trace_is_written_ || !trace_->has_events()) return;
  if (step_ < trace_->end() && !at_end) return;
  trace_->write(folder_->paths().trace());
  trace_is_written_ = true;
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
  report.epochs = epoch_of(step_);
  if (reason == RunEnd::finished) report.test = evaluation_;
  report.checkpoint = checkpoint_;
  std::error_code error;
  if (std::filesystem::exists(report.paths.trace(), error)) report.trace = report.paths.trace();
  report.skipped_images = skipped_->count();
  report.training_seconds = training_seconds_;
  tell(&Listener::ended, report);
  return report;
}

Trainer::Trainer(Runtime& runtime, LoadedJob job, TrainerOptions options)
    : implementation_(std::make_unique<Implementation>(runtime, std::move(job), std::move(options))) {}

Trainer::~Trainer() = default;

void Trainer::add(Listener& listener) {
  implementation_->add(listener);
}

EndReport Trainer::run() {
  return implementation_->run();
}

}  // namespace purine::train
