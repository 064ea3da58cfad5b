#include "purine/train/evaluator.h"

#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "purine/core/error.h"

namespace purine::train {

Evaluator::Evaluator(Runtime& runtime, const Job& job, const Task& task, const data::DatasetPtr& test_set,
                     Location device, std::shared_ptr<Variables> variables,
                     std::shared_ptr<data::SkippedImages> skipped) {
  const data::Batch batch = evaluation_source(graph_, job, test_set, std::move(skipped));
  tensors_ = build_evaluation(batch, job, task.classes, device);
  SessionOptions options;
  options.seed = static_cast<std::uint64_t>(job.train.seed);
  options.variables = std::move(variables);
  session_ = std::make_unique<Session>(runtime, graph_, std::move(options));
}

std::optional<EvaluationReport> Evaluator::run(std::int64_t step, std::int64_t epoch, std::stop_token stop) {
  const auto begin = std::chrono::steady_clock::now();
  double loss = 0;
  std::int64_t images = 0;
  std::int64_t correct = 0;
  std::int64_t correct_in_5 = 0;
  session_->set_iteration(0);
  for (const Step& batch : session_->run({.epochs = 1})) {
    if (stop.stop_requested()) break;
    const auto samples = static_cast<double>(batch.samples);
    images += batch.samples;
    loss += batch.value(tensors_.loss) * samples;
    // Shares of the batch are whole numbers of samples.
    correct += std::llround(batch.value(tensors_.accuracy) * samples);
    if (tensors_.top5.valid()) correct_in_5 += std::llround(batch.value(tensors_.top5) * samples);
  }
  session_->drain();
  if (stop.stop_requested()) return std::nullopt;
  if (!std::isfinite(loss)) {
    throw Error("evaluation", "the test loss after step " + std::to_string(step) + " is not finite",
                "the weights have diverged: lower optimizer.learning_rate, or set optimizer.clip_norm");
  }
  EvaluationReport report;
  report.step = step;
  report.epoch = epoch;
  report.images = images;
  report.loss = loss / static_cast<double>(images);
  report.accuracy = static_cast<double>(correct) / static_cast<double>(images);
  if (tensors_.top5.valid()) report.top5 = static_cast<double>(correct_in_5) / static_cast<double>(images);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

}  // namespace purine::train
