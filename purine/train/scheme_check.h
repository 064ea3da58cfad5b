// Does a job compute the same on several devices as on one?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "purine/data/dataset.h"
#include "purine/io/host_tensor.h"
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
  std::string impossible;       ///< why the network can't be divided so; nothing ran then
  std::string unequal_replica;  ///< the first replica whose bits are not the others'; empty if all are equal

  bool ran() const { return impossible.empty(); }
  bool passed() const { return difference <= tolerance && unequal_replica.empty(); }
};

struct SchemeCheckOptions {
  std::int64_t steps = 3;
  /// Compute in double precision, whose rounding hides nothing. Slow: for small networks.
  bool in_double = false;
};

/// Runs some steps of a job on one device, and then in every scheme that its devices allow: each from the
/// same initial values and with the same batches. The steps end one behind the end of the first epoch, so
/// that the last short batch of an epoch is among them.
///
/// The update rule is the job's, at its learning rate throughout; but in single precision momentum stands in
/// for Adam, which makes a whole step of a gradient that is nothing but rounding. Batch normalisation takes
/// the statistics of all samples (parallel.synchronized_batch_normalization); schemes that can't do that are
/// left out. It divides by deviations, which magnifies rounding, in deep networks a thousandfold a step. How
/// much is measured: one device runs once more from weights that differ in their last bit, and such a network
/// is allowed eight times that difference where it is above scheme_tolerance.
class SchemeCheck {
 public:
  /// Runs the one device. Throws Error where the job has fewer than two devices. The runtime has them all.
  SchemeCheck(Runtime& runtime, LoadedJob loaded, SchemeCheckOptions options);

  /// What a user should know about it, in sentences.
  const std::vector<std::string>& notes() const { return notes_; }
  const LoadedJob& job() const { return loaded_; }
  const SchemeCheckOptions& options() const { return options_; }
  /// How many times scheme_tolerance a difference may be; 1 but for what is said above.
  double magnification() const { return magnification_; }
  /// Tells each result as soon as it is there; true if all passed. A scheme that the network can't be divided
  /// by is told of and counts as passed, unless it is the job's own: that is an Error.
  bool run(const std::function<void(const SchemeResult&)>& tell);

 private:
  /// Whole values of the weights and running statistics after the steps.
  struct Outcome {
    std::vector<io::HostTensor> values;
    std::string unequal_replica;
  };

  void find_statistics();
  void measure_magnification();
  Outcome run_with(const Job::Parallel& section, bool in_other_bits = false) const;
  Job::Parallel alone() const;
  Job::Parallel own_section() const;
  std::vector<Job::Parallel> sections() const;
  bool is_comparable(const Scheme& scheme) const;
  std::optional<Outcome> try_with(const Job::Parallel& section, SchemeResult& result) const;
  void compare(const Outcome& got, SchemeResult& result) const;

  Runtime& runtime_;
  LoadedJob loaded_;
  SchemeCheckOptions options_;
  std::vector<Location> devices_;
  data::DatasetPtr training_set_;
  Task task_;
  std::int64_t steps_per_epoch_;
  std::set<std::string> statistics_;  // paths of the variables of inference that are not learnt
  bool normalizes_batches_ = false;
  std::vector<std::string> notes_;
  Outcome expected_;  // of one device
  double magnification_ = 1;
};

/// How much a weight may differ after `steps` steps, at most 1 in size: 1e-6 for each step of SGD.
///
/// A step takes learning rate * gradient off a weight, and rounding in single precision changes it in two
/// ways: the difference is rounded to 6e-8 of the weight, and the gradient's sums come in another order,
/// which over a batch changes them by some 1e-7 to 1e-6 of their largest terms. So the difference stays below
/// 1e-6 a step as long as no step moves a weight by more than about 1. Velocities carry a step's error on:
/// step k then counts 1 + m + … + m^(k-1) times (one power more for Nesterov's). Sums over more than four
/// devices are allowed as many times more.
///
/// In double precision, whose rounding is 5e8 times smaller, it is 1e-12 a step. Adam runs there as well, and
/// divides a gradient that is nothing but rounding, some 1e-16, by no less than its epsilon: a step of it is
/// allowed learning rate * 1e-16 / epsilon more.
double scheme_tolerance(const Job::Optimizer& optimizer, std::int64_t steps, int devices,
                        bool in_double = false);

}  // namespace purine::train
