// What a program sees while a run goes on.
#pragma once

#include "purine/cli/json_object.h"
#include "purine/io/text_output.h"
#include "purine/train/reports.h"

namespace purine::cli {

/// Adds how fast a run was, and was predicted to be.
void add_prediction(JsonObject& object, const train::RunPrediction& prediction);
/// Adds how workers share operators, and what was predicted of each way.
void add_scheduling(JsonObject& object, const train::SchedulingReport& report);
/// Adds times, in seconds, and what was sent and received.
void add_transfers(JsonObject& object, const trace::TransferUsage& transfers);

/// Prints a JSON object a line for everything that a run reports: `event` says what it is
/// (start, progress, epoch, test, checkpoint, note, end).
class JsonProgress final : public train::Listener {
 public:
  /// The output must outlive it.
  explicit JsonProgress(io::TextOutput& output) : output_(output) {}

  void started(const train::RunReport& report) override;
  void progress(const train::ProgressReport& report) override;
  void epoch(const train::EpochReport& report) override;
  void evaluated(const train::EvaluationReport& report) override;
  void saved(const std::filesystem::path& checkpoint, std::int64_t step) override;
  void note(std::string_view text) override;
  void ended(const train::EndReport& report) override;

 private:
  void print_line(const JsonObject& object);

  io::TextOutput& output_;
};

}  // namespace purine::cli
