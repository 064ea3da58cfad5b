// What a trainer tells while it works.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "purine/core/error.h"
#include "purine/core/location.h"
#include "purine/trace/transfer_meter.h"
#include "purine/train/job.h"
#include "purine/train/run_folder.h"
#include "purine/train/run_prediction.h"
#include "purine/train/scheduling_report.h"

namespace purine::train {

/// A run that is about to go on from `first_step`.
struct RunReport {
  Job job;
  RunPaths paths;
  std::string title;  ///< of the run, for people: the run folder's name
  std::int64_t parameters = 0;
  std::int64_t training_images = 0;
  std::int64_t test_images = 0;
  std::int64_t classes = 0;
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t first_step = 0;  ///< steps that were done before
  std::int64_t steps = 0;       ///< of the whole run
  std::vector<Location> devices = {};
  std::string scheme;     ///< how they share the work: a name, as in the job
  std::string placement;  ///< the same for people: ParallelSetup::text
  int workers = 0;
  SchedulingReport scheduling = {};
  std::size_t peak_bytes = 0;  ///< of training and evaluation, planned before the first step
  std::size_t step_bytes = 0;  ///< of training alone: what train.memory_limit limits
};

/// One step that is done.
struct StepReport {
  std::int64_t step = 0;   ///< steps done, this one included: 1 after the first
  std::int64_t epoch = 0;  ///< from 0
  std::int64_t samples = 0;
  double loss = 0;
  double accuracy = 0;
  double learning_rate = 0;
  double seconds = 0;       ///< since the step before
  double wait_seconds = 0;  ///< of those, how long nothing could run but the bringing of data
};

/// Means over the steps since the last report, each batch weighed by its samples.
struct ProgressReport {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  double loss = 0;
  double accuracy = 0;
  double learning_rate = 0;
  double images_per_second = 0;
  double wait_share = 0;    ///< of the time, 0 to 1
  double seconds_left = 0;  ///< of training, without evaluations
};

/// A finished epoch; means as above.
struct EpochReport {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  double loss = 0;
  double accuracy = 0;
  double seconds = 0;  ///< of this process's steps in it
};

struct EvaluationReport {
  std::int64_t step = 0;
  std::int64_t epoch = 0;  ///< of the last step
  std::int64_t images = 0;
  double loss = 0;
  double accuracy = 0;
  std::optional<double> top5 = {};  ///< where there are more than 5 classes
  double seconds = 0;
};

enum class RunEnd : std::uint8_t {
  finished,
  interrupted,  ///< asked to stop; a checkpoint is saved
  stopped,      ///< after the number of steps that it was given; a checkpoint is saved
};

/// What one of several processes did.
struct RankReport {
  std::string host = {};
  trace::TransferUsage transfers = {};  ///< in its training steps
};

struct EndReport {
  RunEnd end = RunEnd::finished;
  RunPaths paths;
  std::int64_t step = 0;
  std::int64_t trained_steps = 0;                   ///< of those, by this process
  std::int64_t epochs = 0;                          ///< whole ones done
  std::optional<EvaluationReport> test = {};        ///< of a finished run
  std::filesystem::path checkpoint = {};            ///< the newest
  std::optional<std::filesystem::path> trace = {};  ///< this process's, else the run's first
  std::optional<Error> trace_error = {};            ///< why this process's could not be written
  std::optional<Error> metrics_error = {};          ///< why records of the metrics are missing
  std::optional<Error> events_error = {};           ///< why records for TensorBoard are missing
  std::int64_t skipped_images = 0;                  ///< by all ranks
  double training_seconds = 0;                      ///< of this process's steps
  std::int64_t trained_images = 0;                  ///< in them, over all devices
  int devices = 1;
  std::string placement = {};  ///< as in RunReport
  /// By rank, where there are several.
  std::vector<RankReport> ranks = {};
  /// Of a run over several, with what its first steps measured.
  std::optional<RunPrediction> prediction = {};
};

/// Is told what happens, by the thread that trains.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void started(const RunReport&) {}
  virtual void step(const StepReport&) {}
  virtual void progress(const ProgressReport&) {}
  virtual void epoch(const EpochReport&) {}
  virtual void evaluated(const EvaluationReport&) {}
  virtual void saved(const std::filesystem::path& /*checkpoint*/, std::int64_t /*step*/) {}
  /// Something that a user should know, in a sentence.
  virtual void note(std::string_view /*text*/) {}
  virtual void ended(const EndReport&) {}
};

}  // namespace purine::train
