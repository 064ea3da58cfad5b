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
/// The first `train` line of a run that was resumed has means since then.
///
/// TensorBoard shows the same as train/loss, epoch/loss, test/loss and so on.
class MetricsLog final : public Listener {
 public:
  /// Where a run that is resumed goes on.
  struct Resumption {
    std::int64_t step = 0;   ///< steps done before; what the files have of later ones is dropped
    bool evaluated = false;  ///< after that step; if not, a `test` line of it is dropped too
  };
  MetricsLog(const RunPaths& paths, std::optional<Resumption> resumption);

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
