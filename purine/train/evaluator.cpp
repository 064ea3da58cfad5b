#include "purine/train/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "purine/core/error.h"
#include "purine/session/agreement.h"
#include "purine/session/iteration_error.h"
#include "purine/session/rank_values.h"
#include "purine/train/rank_reports.h"
#include "purine/train/step_error.h"

namespace purine::train {
namespace {

std::string batch_text(std::int64_t iteration) {
  return fmt::format("batch {} of the test set", iteration + 1);
}

}  // namespace

Evaluator::Evaluator(Runtime& runtime, const ParallelSetup& setup, const Task& task,
                     const data::DatasetPtr& test_set, Options options)
    : runtime_(runtime) {
  const auto build = [&](Graph& graph, Location device) {
    const Job& job = setup.loaded.job;
    check_test_images(job, task, *test_set);
    tensors_ =
        build_evaluation(evaluation_source(graph, job, test_set, options.skipped), job, task.classes, device);
  };
  at_all_ranks(runtime.endpoint(), [&] { placed_.emplace(setup, build, options.training); });
  for (Tensor* tensor : {&tensors_.loss, &tensors_.accuracy, &tensors_.top5}) {
    if (tensor->valid()) *tensor = placed_->at(*tensor);
  }
  SessionOptions session_options;
  session_options.seed = static_cast<std::uint64_t>(setup.loaded.job.train.seed);
  session_options.waits = std::move(options.waits);
  session_options.notice_after = notice_after(setup.loaded.job.parallel.stall_limit);
  training_ = options.training;
  if (training_ != nullptr && !placed_->can_share_variables_of(*training_)) {
    copied_from_ = std::move(options.variables);
  } else {
    session_options.variables = std::move(options.variables);
  }
  session_ = std::make_unique<Session>(runtime, placed_->running(), std::move(session_options));
}

std::size_t Evaluator::shared_bytes() {
  std::size_t bytes = 0;
  if (!shares_variables()) return bytes;
  for (const Variable& variable : placed_->running().variables()) bytes += variable.info().bytes();
  return bytes;
}

void Evaluator::copy_variables() {
  std::vector<parallel::WholeVariable> trained;
  for (const parallel::WholeVariable& variable : placed_->variables()) {
    const auto& all = training_->variables();
    const auto same = std::find_if(all.begin(), all.end(), [&](const parallel::WholeVariable& any) {
      return any.path == variable.path;
    });
    PURINE_CHECK(same != all.end());
    trained.push_back(*same);
  }
  const std::vector<io::HostTensor> wholes = gather_whole_values(runtime_, trained, *copied_from_);
  const ReadWhole read = [&](const parallel::WholeVariable& variable) -> std::span<const std::byte> {
    const auto found = std::find_if(wholes.begin(), wholes.end(),
                                    [&](const io::HostTensor& whole) { return whole.name == variable.path; });
    PURINE_CHECK(found != wholes.end());
    return found->data;
  };
  divide_whole_values(runtime_, placed_->variables(), read, session_->variables());
}

Evaluator::Sums Evaluator::sum_up(std::stop_token stop) {
  Sums sums;
  if (copied_from_ != nullptr) copy_variables();
  session_->set_iteration(0);
  try {
    for (const Step& batch : session_->run({.epochs = 1})) {
      if (stop.stop_requested()) session_->stop();
      const auto samples = static_cast<double>(batch.samples);
      sums.images += batch.samples;
      if (!batch.has(tensors_.loss)) continue;
      sums.loss += batch.value(tensors_.loss) * samples;
      // Shares of the batch are whole numbers of samples.
      sums.correct += std::llround(batch.value(tensors_.accuracy) * samples);
      if (tensors_.top5.valid()) sums.correct_in_5 += std::llround(batch.value(tensors_.top5) * samples);
    }
    session_->drain();
  } catch (const RemoteError& error) {
    throw renumbered(error, batch_text);
  } catch (const IterationError& error) {
    const Error& cause = error.cause();
    throw Error(cause.component(), fmt::format("{} ({})", cause.message(), batch_text(error.iteration())),
                cause.hint())
        .at(cause.path())
        .on(cause.location());
  }
  return sums;
}

std::optional<EvaluationReport> Evaluator::run(std::int64_t step, std::int64_t epoch, std::stop_token stop) {
  const auto begin = std::chrono::steady_clock::now();
  const Sums sums = sum_up(stop);
  if (session_->iteration() < session_->steps_per_epoch()) return std::nullopt;  // at all ranks
  if (!std::isfinite(sums.loss)) {
    throw Error("evaluation", fmt::format("the test loss after step {} is not finite", step),
                "the weights have diverged: train with a lower optimizer.learning_rate, a longer "
                "optimizer.warmup_epochs, or gradient clipping (optimizer.clip_norm)");
  }
  const auto images = static_cast<double>(sums.images);
  EvaluationReport report;
  report.step = step;
  report.epoch = epoch;
  report.images = sums.images;
  report.loss = sums.loss / images;
  report.accuracy = static_cast<double>(sums.correct) / images;
  if (tensors_.top5.valid()) report.top5 = static_cast<double>(sums.correct_in_5) / images;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

}  // namespace purine::train
