#include "purine/train/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "purine/core/amount_text.h"
#include "purine/core/one_line.h"

namespace purine::train {
namespace {

constexpr double redraw_seconds = 0.1;
constexpr double bar_memory_seconds = 2;

// `count` of `total`, drawn in `width` columns.
std::string bar_text(std::int64_t count, std::int64_t total, int width) {
  const double share = total > 0 ? static_cast<double>(count) / static_cast<double>(total) : 1;
  const int filled = std::clamp(static_cast<int>(std::lround(share * width)), 0, width);
  std::string text = "[";
  for (int i = 0; i < width; ++i) text += i < filled ? '=' : (i == filled ? '>' : ' ');
  return text + ']';
}

std::string rate_text(double images_per_second) {
  if (images_per_second >= 100) return count_text(std::llround(images_per_second)) + " images/s";
  return fmt::format("{:.1f} images/s", images_per_second);
}

std::string wait_text(double share) {
  return fmt::format("{:.0f}% waiting for data", 100 * std::clamp(share, 0.0, 1.0));
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds < 1e9)) return "?";
  if (seconds < 9.95) return fmt::format("{:.1f} s", std::max(seconds, 0.0));
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string percent_text(double share) {
  return fmt::format("{:.2f}%", 100 * share);
}

std::string transfers_text(const trace::TransferUsage& usage) {
  const auto seconds = [](std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; };
  return fmt::format(
      "{:.2f} s of transfers, {:.1f}% of it under operators, {:.2f} s exposed; sent {}, received {}",
      seconds(usage.busy), 100 * usage.overlapped_share(), seconds(usage.exposed()),
      bytes_text(usage.bytes_sent), bytes_text(usage.bytes_received));
}

Progress::~Progress() {
  clear_bar();
}

void Progress::started(const RunReport& report) {
  const Job& job = report.job;
  steps_ = report.steps;
  steps_per_epoch_ = std::max<std::int64_t>(report.steps_per_epoch, 1);
  epochs_ = (steps_ + steps_per_epoch_ - 1) / steps_per_epoch_;
  print_line(
      fmt::format("{}: {} with {} parameters; {} training and {} test images of {} x {} x {}, {} classes",
                  report.title, job.model.name, count_text(report.parameters),
                  count_text(report.training_images), count_text(report.test_images), report.channels,
                  report.height, report.width, count_text(report.classes)));
  print_line(fmt::format(
      "{}, {} an epoch, of {}; {}, learning rate {}; {}, {} of memory", counted_text(steps_, "step"),
      count_text(steps_per_epoch_), counted_text(job.data.batch, "image"), job.optimizer.name,
      job.optimizer.learning_rate, counted_text(report.workers, "worker"), bytes_text(report.peak_bytes)));
  if (const std::string text = scheduling_text(report.scheduling); !text.empty()) print_line(text);
  if (report.devices.size() > 1) {
    print_line(fmt::format("{} devices: {}", report.devices.size(), report.placement));
  }
  if (report.first_step >= report.steps) return;  // a note says so
  const std::string start =
      report.first_step > 0 ? fmt::format("going on after step {} in", report.first_step) : "writing to";
  print_line(fmt::format("{} {}", start, report.paths.folder.string()));
}

void Progress::step(const StepReport& report) {
  if (!options_.terminal) return;
  const double keep = std::exp(-report.seconds / bar_memory_seconds);
  for (double* sum : {&seconds_, &wait_seconds_, &samples_, &loss_, &correct_, &faded_steps_}) *sum *= keep;
  const auto samples = static_cast<double>(report.samples);
  seconds_ += report.seconds;
  wait_seconds_ += report.wait_seconds;
  samples_ += samples;
  loss_ += report.loss * samples;
  correct_ += report.accuracy * samples;
  faded_steps_ += 1;
  const Clock::time_point now = Clock::now();
  if (bar_is_shown_ && std::chrono::duration<double>(now - drawn_).count() < redraw_seconds) return;
  drawn_ = now;
  draw_bar(report);
}

void Progress::draw_bar(const StepReport& report) {
  const double left = seconds_ / std::max(faded_steps_, 1e-9) * static_cast<double>(steps_ - report.step);
  const std::int64_t in_epoch = report.step - report.epoch * steps_per_epoch_;
  const std::string start = fmt::format("epoch {}/{} ", report.epoch + 1, epochs_);
  const std::string end =
      fmt::format(" step {}/{}  loss {:.4f}  accuracy {:.1f}%  {}  {} left  {}", report.step, steps_,
                  loss_ / std::max(samples_, 1e-9), 100 * correct_ / std::max(samples_, 1e-9),
                  rate_text(samples_ / std::max(seconds_, 1e-9)), duration_text(left),
                  wait_text(wait_seconds_ / std::max(seconds_, 1e-9)));
  const int columns = options_.columns > 0 ? options_.columns : output_.columns();
  const int room = columns - 1 - static_cast<int>(start.size() + end.size()) - 2;
  std::string line = start;
  if (room >= 5) line += bar_text(in_epoch, std::min(steps_per_epoch_, steps_), std::min(room, 30));
  line += end;
  if (static_cast<int>(line.size()) > columns - 1)
    line.resize(static_cast<std::size_t>(std::max(columns - 1, 0)));
  output_.write(fmt::format("\r{}\033[K", line));
  bar_is_shown_ = true;
}

void Progress::progress(const ProgressReport& report) {
  if (options_.terminal) return;
  print_line(fmt::format("{}  step {}/{}  loss {:.4f}  accuracy {:.1f}%  {}  {} left  {}",
                         epoch_text(report.epoch), report.step, steps_, report.loss, 100 * report.accuracy,
                         rate_text(report.images_per_second), duration_text(report.seconds_left),
                         wait_text(report.wait_share)));
}

void Progress::epoch(const EpochReport& report) {
  print_line(fmt::format("{}: training loss {:.4f}, accuracy {}, {}", epoch_text(report.epoch), report.loss,
                         percent_text(report.accuracy), duration_text(report.seconds)));
}

void Progress::evaluated(const EvaluationReport& report) {
  std::string text = fmt::format("{}: test loss {:.4f}, accuracy {}", epoch_text(report.epoch), report.loss,
                                 percent_text(report.accuracy));
  if (report.top5) text += fmt::format(", within the first 5 {}", percent_text(*report.top5));
  print_line(fmt::format("{}, {}", text, duration_text(report.seconds)));
}

void Progress::saved(const std::filesystem::path& checkpoint, std::int64_t step) {
  print_line(fmt::format("step {}: saved {}", step, checkpoint.string()));
}

void Progress::note(std::string_view text) {
  print_line(text);
}

void Progress::ended(const EndReport& report) {
  clear_bar();
  switch (report.end) {
    case RunEnd::interrupted:
      print_line(fmt::format("interrupted after step {}", report.step));
      break;
    case RunEnd::stopped:
      print_line(fmt::format("stopped after step {}, as asked", report.step));
      break;
    case RunEnd::finished:
      if (report.trained_steps == 0) break;
      print_line(fmt::format("finished {}; {} of training", counted_text(report.step, "step"),
                             duration_text(report.training_seconds)));
      break;
  }
  if (report.trained_images > 0 && report.training_seconds > 0) {
    std::string speed =
        rate_text(static_cast<double>(report.trained_images) / report.training_seconds) + " in training";
    if (report.devices > 1)
      speed += fmt::format(" over all {} devices, {}", report.devices, report.placement);
    print_line(speed);
  }
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    const RankReport& each = report.ranks[rank];
    print_line(fmt::format("rank {} at {}: {}", rank, each.host, transfers_text(each.transfers)));
  }
  if (report.prediction) print_line(prediction_text(*report.prediction));
  if (report.skipped_images > 0) {
    print_line(fmt::format("{} {} left out", counted_text(report.skipped_images, "broken image"),
                           report.skipped_images == 1 ? "was" : "were"));
  }
  if (report.test) {
    print_line(fmt::format("test accuracy  {} of {} (loss {:.4f})", percent_text(report.test->accuracy),
                           counted_text(report.test->images, "image"), report.test->loss));
  }
  if (!report.checkpoint.empty()) print_line(fmt::format("checkpoint     {}", report.checkpoint.string()));
  const auto extent = [](const std::optional<Error>& error) { return error ? ", which is incomplete" : ""; };
  print_line(
      fmt::format("metrics        {}{}", report.paths.metrics().string(), extent(report.metrics_error)));
  print_line(fmt::format("TensorBoard    {}{}", report.paths.events().string(), extent(report.events_error)));
  if (report.trace) print_line(fmt::format("trace          {}", report.trace->string()));
}

void Progress::print_line(std::string_view text) {
  clear_bar();
  output_.write(one_line(text) + "\n");
}

void Progress::clear_bar() {
  if (!bar_is_shown_) return;
  output_.write("\r\033[K");
  bar_is_shown_ = false;
}

std::string Progress::epoch_text(std::int64_t epoch) const {
  return fmt::format("epoch {}/{}", epoch + 1, epochs_);
}

}  // namespace purine::train
