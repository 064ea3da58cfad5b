#include "purine/train/step_sums.h"

#include <utility>

namespace purine::train {

void StepSums::add(const StepReport& step) {
  const auto samples = static_cast<double>(step.samples);
  epoch_.loss += step.loss * samples;
  epoch_.correct += step.accuracy * samples;
  epoch_.samples += step.samples;
  epoch_seconds_ += step.seconds;
  training_seconds_ += step.seconds;
  trained_images_ += step.samples;
  interval_.loss += step.loss * samples;
  interval_.correct += step.accuracy * samples;
  interval_.samples += samples;
  interval_.seconds += step.seconds;
  interval_.wait_seconds += step.wait_seconds;
  interval_.steps += 1;
}

EpochReport StepSums::finish_epoch(std::int64_t step, std::int64_t epoch) {
  const auto samples = static_cast<double>(epoch_.samples);
  EpochReport report;
  report.step = step;
  report.epoch = epoch;
  report.loss = epoch_.loss / samples;
  report.accuracy = epoch_.correct / samples;
  report.seconds = std::exchange(epoch_seconds_, 0);
  return report;
}

ProgressReport StepSums::take_progress(const StepReport& last, std::int64_t steps) {
  const Interval sums = std::exchange(interval_, {});
  ProgressReport report;
  report.step = last.step;
  report.epoch = last.epoch;
  report.loss = sums.loss / sums.samples;
  report.accuracy = sums.correct / sums.samples;
  report.learning_rate = last.learning_rate;
  report.images_per_second = sums.samples / sums.seconds;
  report.wait_share = sums.wait_seconds / sums.seconds;
  report.seconds_left = sums.seconds / sums.steps * static_cast<double>(steps - last.step);
  return report;
}

}  // namespace purine::train
