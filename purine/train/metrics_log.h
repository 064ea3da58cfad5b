// The metrics of a run, in files.
#pragma once

#include <cstdint>
#include <optional>

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
/// TensorBoard shows the same as train/loss, epoch/loss, test/loss and so on.
class MetricsLog final : public Listener {
 public:
  /// `resumed_step`: steps done before, if the run goes on; what the files have of later ones is dropped.
  MetricsLog(const RunPaths& paths, std::optional<std::int64_t> resumed_step);

  void progress(const ProgressReport& report) override;
  void epoch(const EpochReport& report) override;
  void evaluated(const EvaluationReport& report) override;
  void saved(const std::filesystem::path& checkpoint, std::int64_t step) override;
  void ended(const EndReport& report) override;

 private:
  void flush();

  io::MetricsWriter metrics_;
  io::EventFileWriter events_;
};

}  // namespace purine::train
