// What a person sees while a run goes on.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "purine/io/text_output.h"
#include "purine/trace/transfer_meter.h"
#include "purine/train/reports.h"

namespace purine::train {

/// `48 s`, `3:05`, `2:07:09`: seconds, minutes and seconds, or hours.
std::string duration_text(double seconds);
/// `91.42%`.
std::string percent_text(double share);
/// `12.3 s of transfers, 96.2% of it under operators, 0.5 s exposed; sent 244.4 MB, received 244.4 MB`.
std::string transfers_text(const trace::TransferUsage& usage);

/// Prints a run: on a terminal a bar that moves within one line, elsewhere a line every `report_every` steps;
/// epochs, evaluations and where the results lie as lines on both.
class Progress final : public Listener {
 public:
  struct Options {
    bool terminal = false;  ///< draw the bar
    /// Columns of the terminal; 0: asked of the output each time.
    int columns = 0;
  };
  /// The output must outlive it.
  Progress(io::TextOutput& output, Options options) : output_(output), options_(options) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Takes the bar away.
  ~Progress() override;

  void started(const RunReport& report) override;
  void step(const StepReport& report) override;
  void progress(const ProgressReport& report) override;
  void epoch(const EpochReport& report) override;
  void evaluated(const EvaluationReport& report) override;
  void saved(const std::filesystem::path& checkpoint, std::int64_t step) override;
  void note(std::string_view text) override;
  void ended(const EndReport& report) override;

 private:
  using Clock = std::chrono::steady_clock;

  void print_line(std::string_view text);
  void draw_bar(const StepReport& report);
  void clear_bar();
  std::string epoch_text(std::int64_t epoch) const;

  io::TextOutput& output_;
  Options options_;
  std::int64_t steps_ = 0;
  std::int64_t steps_per_epoch_ = 1;
  std::int64_t epochs_ = 1;
  bool bar_is_shown_ = false;
  Clock::time_point drawn_ = {};
  // Means for the bar over about its last two seconds of steps: sums that fade.
  double seconds_ = 0;
  double wait_seconds_ = 0;
  double samples_ = 0;
  double loss_ = 0;
  double correct_ = 0;
  double faded_steps_ = 0;
};

}  // namespace purine::train
