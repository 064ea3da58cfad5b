#include "purine/train/metrics_log.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace purine::train {
namespace {

io::MetricsWriter open_metrics(const RunPaths& paths, std::optional<MetricsLog::Resumption> resumption) {
  if (!resumption) return io::MetricsWriter::create(paths.metrics());
  std::optional<io::Metric> also;
  if (!resumption->evaluated) also = io::Metric{"phase", "test"};
  return io::MetricsWriter::resume(paths.metrics(), resumption->step + 1, also);
}

io::EventFileOptions event_options(std::optional<MetricsLog::Resumption> resumption) {
  io::EventFileOptions options;
  if (resumption) options.resumed_step = resumption->step + 1;
  return options;
}

}  // namespace

MetricsLog::MetricsLog(const RunPaths& paths, std::optional<Resumption> resumption, Notice notice)
    : notice_(std::move(notice)),
      metrics_(open_metrics(paths, resumption)),
      events_(paths.events(), event_options(resumption)) {}

void MetricsLog::progress(const ProgressReport& report) {
  const std::vector<io::Metric> metrics = {{"phase", "train"},
                                           {"epoch", report.epoch + 1},
                                           {"loss", report.loss},
                                           {"accuracy", report.accuracy},
                                           {"learning_rate", static_cast<float>(report.learning_rate)},
                                           {"images_per_s", report.images_per_second},
                                           {"data_wait", report.wait_share}};
  const std::vector<io::Scalar> scalars = {
      {"train/loss", static_cast<float>(report.loss)},
      {"train/accuracy", static_cast<float>(report.accuracy)},
      {"train/learning_rate", static_cast<float>(report.learning_rate)},
      {"train/images_per_s", static_cast<float>(report.images_per_second)},
      {"train/data_wait", static_cast<float>(report.wait_share)}};
  write(report.step, metrics, scalars);
}

void MetricsLog::epoch(const EpochReport& report) {
  const std::vector<io::Metric> metrics = {{"phase", "epoch"},
                                           {"epoch", report.epoch + 1},
                                           {"loss", report.loss},
                                           {"accuracy", report.accuracy},
                                           {"seconds", report.seconds}};
  const std::vector<io::Scalar> scalars = {{"epoch/loss", static_cast<float>(report.loss)},
                                           {"epoch/accuracy", static_cast<float>(report.accuracy)}};
  write(report.step, metrics, scalars);
  flush();
}

void MetricsLog::evaluated(const EvaluationReport& report) {
  std::vector<io::Metric> metrics = {
      {"phase", "test"}, {"epoch", report.epoch + 1}, {"loss", report.loss}, {"accuracy", report.accuracy}};
  std::vector<io::Scalar> scalars = {{"test/loss", static_cast<float>(report.loss)},
                                     {"test/accuracy", static_cast<float>(report.accuracy)}};
  if (report.top5) {
    metrics.push_back({"top5", *report.top5});
    scalars.push_back({"test/top5", static_cast<float>(*report.top5)});
  }
  metrics.push_back({"seconds", report.seconds});
  write(report.step, metrics, scalars);
  flush();
}

void MetricsLog::saved(const std::filesystem::path&, std::int64_t) {
  flush();
}

void MetricsLog::write(std::int64_t step, std::span<const io::Metric> metrics,
                       std::span<const io::Scalar> scalars) {
  attempt(metrics_error_, [&] { metrics_.write(step, metrics); });
  attempt(events_error_, [&] { events_.write(step, scalars); });
}

void MetricsLog::flush() {
  attempt(metrics_error_, [this] { metrics_.sync(); });
  attempt(events_error_, [this] { events_.flush(); });
}

void MetricsLog::attempt(std::optional<Error>& first_error, const std::function<void()>& output) {
  try {
    output();
  } catch (const Error& error) {
    if (first_error) return;
    first_error = error;
    notice_(fmt::format("the run goes on, but not all of its metrics are on the disk: {}", error.what()));
  }
}

std::optional<Error> MetricsLog::metrics_error() const {
  return metrics_.is_whole() ? std::nullopt : metrics_error_;
}

std::optional<Error> MetricsLog::events_error() const {
  return events_.is_whole() ? std::nullopt : events_error_;
}

}  // namespace purine::train
