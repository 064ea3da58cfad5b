// Does a job compute the same on several devices as on one?
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "purine/data/dataset.h"
#include "purine/session/runtime.h"
#include "purine/train/network.h"
#include "purine/train/parallel_section.h"

namespace purine::train {

/// A way to divide the job that was tried, and what came of it.
struct SchemeResult {
  std::string scheme;
  std::string mesh;
  std::string details;          ///< other keys that are not at their defaults: `all_reduce = "ring"`
  double difference = 0;        ///< the largest of a weight or running statistic from one device
  double tolerance = 0;         ///< of the variable below
  std::string variable;         ///< the one that uses up most of its tolerance
  std::string unequal_replica;  ///< the first replica whose bits are not the others'; empty if all are equal

  bool passed() const { return difference <= tolerance && unequal_replica.empty(); }
};

/// Runs some steps of a job on one device, and then in every scheme that its devices allow: each from the
/// same initial values and with the same batches. The steps end one behind the end of the first epoch, so
/// that the last short batch of an epoch is among them.
///
/// The update rule is the job's, at its learning rate throughout, but momentum in place of Adam's: where a
/// gradient is nothing but rounding, Adam makes a whole step of it. Batch normalisation takes the statistics
/// of all samples (parallel.synchronized_batch_normalization).
class SchemeCheck {
 public:
  /// Throws Error where the job has fewer than two devices. The runtime has them all.
  SchemeCheck(Runtime& runtime, LoadedJob loaded, std::int64_t steps);

  /// What a user should know about it, in sentences.
  const std::vector<std::string>& notes() const { return notes_; }
  const LoadedJob& job() const { return loaded_; }
  std::int64_t steps() const { return steps_; }
  /// Tells each result as soon as it is there; true if all passed.
  bool run(const std::function<void(const SchemeResult&)>& tell);

 private:
  struct Outcome;
  Outcome run_with(const Job::Parallel& section) const;
  std::vector<Job::Parallel> sections() const;
  SchemeResult compare(const Outcome& expected, const Outcome& got, const Job::Parallel& section) const;

  Runtime& runtime_;
  LoadedJob loaded_;
  std::int64_t steps_;
  std::vector<Location> devices_;
  data::DatasetPtr training_set_;
  Task task_;
  std::int64_t steps_per_epoch_;
  std::set<std::string> statistics_;  // paths of the variables of inference that are not learnt
  bool normalizes_batches_ = false;
  std::vector<std::string> notes_;
};

/// How much a weight may differ after `steps` steps, at most 1 in size: 1e-6 for each step of SGD.
///
/// A step takes learning rate * gradient off a weight, and rounding in single precision changes it in two
/// ways: the difference is rounded to 6e-8 of the weight, and the gradient's sums come in another order,
/// which over a batch changes them by some 1e-7 to 1e-6 of their largest terms. So the difference stays below
/// 1e-6 a step as long as no step moves a weight by more than about 1. Velocities carry a step's error on:
/// step k then counts 1 + m + … + m^(k-1) times (one power more for Nesterov's). Sums over more than four
/// devices are allowed as many times more.
double scheme_tolerance(const Job::Optimizer& optimizer, std::int64_t steps, int devices);

}  // namespace purine::train
