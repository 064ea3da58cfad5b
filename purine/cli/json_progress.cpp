#include "purine/cli/json_progress.h"

#include <string>
#include <vector>

namespace purine::cli {

void add_transfers(JsonObject& object, const trace::TransferUsage& transfers) {
  const auto seconds = [](std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; };
  object.add("seconds", seconds(transfers.time))
      .add("compute_seconds", seconds(transfers.computing))
      .add("transfer_seconds", seconds(transfers.busy))
      .add("overlapped_seconds", seconds(transfers.overlapped))
      .add("exposed_seconds", seconds(transfers.exposed()))
      .add("messages_sent", transfers.messages_sent)
      .add("messages_received", transfers.messages_received)
      .add("bytes_sent", transfers.bytes_sent)
      .add("bytes_received", transfers.bytes_received);
}

void add_prediction(JsonObject& object, const train::RunPrediction& prediction) {
  object.add("step_seconds", prediction.measured_step_seconds)
      .add("predicted_step_seconds", prediction.predicted_step_seconds)
      .add("one_device_images_per_s", prediction.one_device_images_per_second)
      .add("speed_up", prediction.speed_up)
      .add("efficiency", prediction.efficiency);
}

void add_scheduling(JsonObject& object, const train::SchedulingReport& report) {
  std::vector<JsonObject> candidates;
  for (const SchedulingChoice::Candidate& candidate : report.choice.candidates) {
    candidates.push_back(
        JsonObject().add("parts", candidate.parts).add("predicted_step_seconds", candidate.step_seconds));
  }
  JsonObject scheduling;
  scheduling.add("parts", report.choice.parts).add("candidates", std::span<const JsonObject>(candidates));
  if (report.data_parallel_seconds) {
    scheduling.add("data_parallel_predicted_step_seconds", *report.data_parallel_seconds);
  }
  object.add("scheduling", scheduling);
}

void JsonProgress::started(const train::RunReport& report) {
  std::vector<std::string> devices;
  for (const Location& device : report.devices) devices.push_back(device.text());
  JsonObject object;
  object.add("event", "start")
      .add("run_folder", report.paths.folder.string())
      .add("model", report.job.model.name)
      .add("parameters", report.parameters)
      .add("training_images", report.training_images)
      .add("test_images", report.test_images)
      .add("classes", report.classes)
      .add("first_step", report.first_step)
      .add("steps", report.steps)
      .add("steps_per_epoch", report.steps_per_epoch)
      .add("devices", std::span<const std::string>(devices))
      .add("scheme", report.scheme)
      .add("workers", report.workers)
      .add("peak_bytes", report.peak_bytes)
      .add("step_bytes", report.step_bytes);
  add_scheduling(object, report.scheduling);
  print_line(object);
}

void JsonProgress::progress(const train::ProgressReport& report) {
  print_line(JsonObject()
                 .add("event", "progress")
                 .add("step", report.step)
                 .add("epoch", report.epoch + 1)
                 .add("loss", report.loss)
                 .add("accuracy", report.accuracy)
                 .add("learning_rate", report.learning_rate)
                 .add("images_per_s", report.images_per_second)
                 .add("data_wait", report.wait_share)
                 .add("seconds_left", report.seconds_left));
}

void JsonProgress::epoch(const train::EpochReport& report) {
  print_line(JsonObject()
                 .add("event", "epoch")
                 .add("step", report.step)
                 .add("epoch", report.epoch + 1)
                 .add("loss", report.loss)
                 .add("accuracy", report.accuracy)
                 .add("seconds", report.seconds));
}

void JsonProgress::evaluated(const train::EvaluationReport& report) {
  JsonObject object;
  object.add("event", "test")
      .add("step", report.step)
      .add("epoch", report.epoch + 1)
      .add("images", report.images)
      .add("loss", report.loss)
      .add("accuracy", report.accuracy);
  if (report.top5) object.add("top5", *report.top5);
  print_line(object.add("seconds", report.seconds));
}

void JsonProgress::saved(const std::filesystem::path& checkpoint, std::int64_t step) {
  print_line(
      JsonObject().add("event", "checkpoint").add("step", step).add("checkpoint", checkpoint.string()));
}

void JsonProgress::note(std::string_view text) {
  print_line(JsonObject().add("event", "note").add("text", text));
}

void JsonProgress::ended(const train::EndReport& report) {
  JsonObject object;
  object.add("event", "end")
      .add("end", report.end == train::RunEnd::finished      ? "finished"
                  : report.end == train::RunEnd::interrupted ? "interrupted"
                                                             : "stopped")
      .add("step", report.step)
      .add("trained_steps", report.trained_steps)
      .add("epochs", report.epochs)
      .add("run_folder", report.paths.folder.string());
  if (report.test) object.add("test_accuracy", report.test->accuracy).add("test_loss", report.test->loss);
  if (!report.checkpoint.empty()) object.add("checkpoint", report.checkpoint.string());
  object.add("metrics", report.paths.metrics().string())
      .add("metrics_are_complete", !report.metrics_error)
      .add("events", report.paths.events().string())
      .add("events_are_complete", !report.events_error);
  if (report.trace) object.add("trace", report.trace->string());
  if (!report.ranks.empty()) {
    std::vector<JsonObject> ranks;
    for (const train::RankReport& rank : report.ranks) {
      JsonObject& each = ranks.emplace_back();
      each.add("rank", static_cast<std::int64_t>(ranks.size()) - 1).add("host", rank.host);
      add_transfers(each, rank.transfers);
    }
    object.add("ranks", std::span<const JsonObject>(ranks));
  }
  if (report.prediction) add_prediction(object, *report.prediction);
  print_line(object.add("skipped_images", report.skipped_images)
                 .add("training_seconds", report.training_seconds)
                 .add("trained_images", report.trained_images));
}

void JsonProgress::print_line(const JsonObject& object) {
  output_.write(object.text() + "\n");
}

}  // namespace purine::cli
