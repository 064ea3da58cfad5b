// The metrics of a run, in files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "purine/core/error.h"
#include "purine/io/event_file.h"
#include "purine/io/metrics.h"
#include "purine/train/reports.h"

namespace purine::train {

/// Writes what a run reports into its folder. A line of `metrics.jsonl` has the number of steps done and
/// the epoch, counted from 1, and says by its `phase` what else it has:
///
///     train   loss, accuracy, learning_rate, images_per_s, data_wait   means since the line before
///     epoch   loss, accuracy, seconds                                  means over the epoch
///     test    loss, accuracy, top5, seconds                            on the test set
///
/// The first `train` line of a run that was resumed has means since then.
///
/// TensorBoard shows the same as train/loss, epoch/loss, test/loss and so on.
///
/// Once the files are open, a disk that takes no more ends no run: a sentence for the user goes to `notice`,
/// once a file, and what could not be written is tried again with what comes later. `metrics_error` and
/// `events_error` say at the end whether records are missing.
class MetricsLog final : public Listener {
 public:
  /// Where a run that is resumed goes on.
  struct Resumption {
    std::int64_t step = 0;   ///< steps done before; what the files have of later ones is dropped
    bool evaluated = false;  ///< after that step; if not, a `test` line of it is dropped too
  };
  using Notice = std::function<void(std::string_view)>;
  MetricsLog(const RunPaths& paths, std::optional<Resumption> resumption, Notice notice);

  /// Hands all that is held to the system, or tries to.
  void flush();
  /// After a flush, why records are missing in the file of that kind; nothing if none are.
  std::optional<Error> metrics_error() const;
  std::optional<Error> events_error() const;

  void progress(const ProgressReport& report) override;
  void epoch(const EpochReport& report) override;
  void evaluated(const EvaluationReport& report) override;
  void saved(const std::filesystem::path& checkpoint, std::int64_t step) override;

 private:
  void write(std::int64_t step, std::span<const io::Metric> metrics, std::span<const io::Scalar> scalars);
  void attempt(std::optional<Error>& first_error, const std::function<void()>& output);

  Notice notice_;
  io::MetricsWriter metrics_;
  io::EventFileWriter events_;
  std::optional<Error> metrics_error_;
  std::optional<Error> events_error_;
};

}  // namespace purine::train
