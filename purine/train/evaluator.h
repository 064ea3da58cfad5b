// Measures a network on a test set.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "purine/data/dataset.h"
#include "purine/session/session.h"
#include "purine/train/network.h"
#include "purine/train/placed_graph.h"
#include "purine/train/reports.h"

namespace purine::train {

/// A job's network for inference on its test set, on the job's devices. Where the runtime has other ranks,
/// all of them make the same calls; rank 0 has the figures.
class Evaluator {
 public:
  struct Options {
    /// The training's graph and its session's variables, whose values are measured: the variables themselves
    /// or, where they lie otherwise (in a pipeline whose stages are cut anew), copies made before each run.
    /// Without them new ones, that a checkpoint is then loaded into.
    const PlacedGraph* training = nullptr;
    std::shared_ptr<Variables> variables = {};
    std::shared_ptr<data::SkippedImages> skipped = {};
    std::function<void(const RankWait&)> waits = {};  ///< as in SessionOptions
  };
  Evaluator(Runtime& runtime, const ParallelSetup& setup, const Task& task, const data::DatasetPtr& test_set,
            Options options);

  PlacedGraph& graph() { return *placed_; }
  bool shares_variables() const { return copied_from_ == nullptr; }
  /// Bytes of the variables that are the training's own.
  std::size_t shared_bytes();
  Session& session() { return *session_; }

  /// Goes through the test set once, while nothing else runs on the variables. Each batch weighs by its
  /// samples. `step` and `epoch` go into the report. Nothing if it was asked to stop.
  /// A loss that is not finite is an Error.
  std::optional<EvaluationReport> run(std::int64_t step, std::int64_t epoch, std::stop_token stop = {});

 private:
  struct Sums {
    double loss = 0;
    std::int64_t images = 0;
    std::int64_t correct = 0;
    std::int64_t correct_in_5 = 0;
  };
  Sums sum_up(std::stop_token stop);
  void copy_variables();

  Runtime& runtime_;
  EvaluationTensors tensors_;  // of the graph that runs
  std::optional<PlacedGraph> placed_;
  const PlacedGraph* training_ = nullptr;
  std::shared_ptr<Variables> copied_from_;  // none if they are shared
  std::unique_ptr<Session> session_;
};

}  // namespace purine::train
