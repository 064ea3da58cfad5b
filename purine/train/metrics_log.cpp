#include "purine/train/metrics_log.h"

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

MetricsLog::MetricsLog(const RunPaths& paths, std::optional<Resumption> resumption)
    : metrics_(open_metrics(paths, resumption)), events_(paths.events(), event_options(resumption)) {}

void MetricsLog::progress(const ProgressReport& report) {
  metrics_.write(report.step, {{"phase", "train"},
                               {"epoch", report.epoch + 1},
                               {"loss", report.loss},
                               {"accuracy", report.accuracy},
                               {"learning_rate", static_cast<float>(report.learning_rate)},
                               {"images_per_s", report.images_per_second},
                               {"data_wait", report.wait_share}});
  const std::vector<io::Scalar> scalars = {
      {"train/loss", static_cast<float>(report.loss)},
      {"train/accuracy", static_cast<float>(report.accuracy)},
      {"train/learning_rate", static_cast<float>(report.learning_rate)},
      {"train/images_per_s", static_cast<float>(report.images_per_second)},
      {"train/data_wait", static_cast<float>(report.wait_share)}};
  events_.write(report.step, scalars);
}

void MetricsLog::epoch(const EpochReport& report) {
  metrics_.write(report.step, {{"phase", "epoch"},
                               {"epoch", report.epoch + 1},
                               {"loss", report.loss},
                               {"accuracy", report.accuracy},
                               {"seconds", report.seconds}});
  const std::vector<io::Scalar> scalars = {{"epoch/loss", static_cast<float>(report.loss)},
                                           {"epoch/accuracy", static_cast<float>(report.accuracy)}};
  events_.write(report.step, scalars);
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
  metrics_.write(report.step, metrics);
  events_.write(report.step, scalars);
  flush();
}

void MetricsLog::saved(const std::filesystem::path&, std::int64_t) {
  flush();
}

void MetricsLog::ended(const EndReport&) {
  flush();
}

void MetricsLog::flush() {
  metrics_.sync();
  events_.flush();
}

}  // namespace purine::train
