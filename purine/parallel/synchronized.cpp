#include "purine/parallel/synchronized.h"

#include <algorithm>
#include <string>
#include <utility>

#include "purine/core/error.h"
#include "purine/ops/batch_normalization.h"
#include "purine/ops/binary.h"
#include "purine/ops/reduce.h"
#include "purine/ops/reshape.h"
#include "purine/ops/unary.h"

namespace purine::parallel {
namespace {

bool is_training(const Contract& contract) {
  return contract.type() == "batch_normalization_training";
}

bool is_gradient(const Contract& contract) {
  return contract.type() == "batch_normalization_training_gradient";
}

bool is_unbiased(const Contract& contract) {
  return contract.type() == "unbiased_variance";
}

/// Which input has the samples.
int samples_input(const Contract& contract) {
  return is_training(contract) ? 0 : 1;
}

/// Builds the composition for one operator, location by location.
class Synchronizer {
 public:
  Synchronizer(Graph& graph, const Mesh& mesh, Resharder& resharder, Operator op,
               std::span<const Division> divisions, std::span<const Pieces> inputs)
      : graph_(graph),
        mesh_(mesh),
        resharder_(resharder),
        op_(op),
        path_(op.path()),
        inputs_(inputs),
        x_(inputs[static_cast<std::size_t>(samples_input(op.contract()))]),
        whole_(op.input(samples_input(op.contract())).shape()) {
    over_channel_.axes = {0};
    for (int dimension = 2; dimension < whole_.rank(); ++dimension) over_channel_.axes.push_back(dimension);
    for (const Division& division : divisions) {
      const bool samples = division.divided &&
                           division.rule.inputs[static_cast<std::size_t>(samples_input(op.contract()))] == 0;
      // A vector of one value a channel: summed over the samples' axes, and with the channels where they are
      // divided.
      summed_.push_back(samples            ? partial()
                        : division.divided ? split(0, division.units, division.first)
                                           : replicated());
      known_.push_back(samples ? replicated() : summed_.back());
    }
  }

  std::vector<Pieces> training() {
    const auto& options = dynamic_cast<const ops::BatchNormalizationTraining&>(op_.contract()).options();
    const Pieces mean = total("mean", [&](std::size_t i) { return mean_of(x_[i], "mean_part"); });
    const Pieces variance = total(
        "variance", [&](std::size_t i) { return mean_of(ops::square(centred(i, mean)), "variance_part"); });
    const Pieces y = each([&](std::size_t i) {
      return ops::batch_normalization_inference(x_[i], inputs_[1][i], inputs_[2][i], mean[i], variance[i],
                                                options, "normalize");
    });
    return {y, mean, variance};
  }

  std::vector<Pieces> gradient() {
    const auto& options =
        dynamic_cast<const ops::BatchNormalizationTrainingGradient&>(op_.contract()).options();
    const Pieces& scale = inputs_[2];
    const Pieces& mean = inputs_[3];
    const Pieces& variance = inputs_[4];
    // Those of the same formula with given statistics: dy * scale / s, and the parts of the other two.
    Pieces direct(x_.size());
    Pieces scale_part(x_.size());
    Pieces shift_part(x_.size());
    each([&](std::size_t i) {
      const Operator op = graph_.add(std::make_shared<ops::BatchNormalizationInferenceGradient>(options),
                                     {inputs_[0][i], x_[i], scale[i], mean[i], variance[i]}, "direct");
      direct[i] = op.output(0);
      scale_part[i] = op.output(1);
      shift_part[i] = op.output(2);
      return op.output(0);
    });
    const Pieces by_scale = total("scale", [&](std::size_t i) { return scale_part[i]; });
    const Pieces by_shift = total("shift", [&](std::size_t i) { return shift_part[i]; });
    const double each_element = 1.0 / static_cast<double>(count());
    const Pieces by_x = each([&](std::size_t i) {
      const Tensor deviation = ops::sqrt(ops::shift(variance[i], options.epsilon), "deviation");
      const Tensor slope = ops::divide(ops::scale(by_scale[i], each_element), deviation, "slope");
      const Tensor offset = ops::scale(by_shift[i], each_element, "offset");
      const Tensor through = ops::add(ops::multiply(centred(i, mean), per_channel(slope)),
                                      per_channel(offset), "through_statistics");
      return ops::subtract(direct[i], ops::multiply(through, per_channel(ops::divide(scale[i], deviation))),
                           "by_x");
    });
    return {by_x, by_scale, by_shift};
  }

  std::vector<Pieces> unbiased() {
    const auto n = static_cast<double>(count());
    const Pieces& variance = inputs_[0];
    Pieces result(variance.size());
    for (std::size_t i = 0; i < variance.size(); ++i) {
      if (!variance[i].valid()) continue;
      const auto place = graph_.at(variance[i].location());
      const auto scope = graph_.reopen_scope("@" + std::to_string(i) + "/" + path_);
      result[i] = ops::scale(variance[i], n > 1 ? n / (n - 1) : 1, "scale");
    }
    return {result};
  }

 private:
  /// Elements of a channel in the whole batch.
  std::int64_t count() const { return over_channel_.count(whole_); }

  /// Calls a function for each location that has samples, there.
  template <typename Function>
  Pieces each(Function&& function) {
    Pieces result(x_.size());
    for (std::size_t i = 0; i < x_.size(); ++i) {
      if (!x_[i].valid()) continue;
      const auto place = graph_.at(mesh_.locations()[i]);
      const auto scope = graph_.reopen_scope("@" + std::to_string(i) + "/" + path_);
      result[i] = function(i);
    }
    return result;
  }

  /// The sum of what the locations have, at each of them.
  template <typename Function>
  Pieces total(const char* name, Function&& function) {
    Pieces parts = each(function);
    const TensorInfo info{{whole_[1]}, op_.output(0).dtype()};
    return resharder_.convert(std::move(parts), info, summed_, known_, path_ + "/" + name);
  }

  /// The sum over a piece's samples, divided by the whole's number.
  Tensor mean_of(Tensor x, const char* name) {
    return graph_.add(std::make_shared<ops::Mean>(over_channel_, count()), {x}, name).output();
  }

  Tensor per_channel(Tensor vector) const {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(whole_.rank()), 1);
    extents[1] = -1;
    return ops::reshape(vector, extents);
  }

  Tensor centred(std::size_t i, const Pieces& mean) const {
    return ops::subtract(x_[i], per_channel(mean[i]), "centred");
  }

  Graph& graph_;
  const Mesh& mesh_;
  Resharder& resharder_;
  Operator op_;
  std::string path_;
  std::span<const Pieces> inputs_;
  const Pieces& x_;
  Shape whole_;
  ops::Reduction over_channel_;
  Spec summed_;
  Spec known_;
};

}  // namespace

std::optional<SplitRule> synchronized_rule(const Contract& contract, const SplitRule& approximate) {
  if (!is_training(contract) && !is_gradient(contract) && !is_unbiased(contract)) return std::nullopt;
  SplitRule rule = approximate;
  rule.approximate = false;
  for (int& output : rule.outputs) {
    if (output == SplitRule::partial) output = SplitRule::whole;
  }
  return rule;
}

bool is_synchronized(Operator op, std::span<const Division> divisions) {
  const Contract& contract = op.contract();
  if (!is_training(contract) && !is_gradient(contract) && !is_unbiased(contract)) return false;
  const auto samples = static_cast<std::size_t>(samples_input(contract));
  return std::any_of(divisions.begin(), divisions.end(), [&](const Division& division) {
    return division.divided && !division.rule.approximate && division.rule.inputs[samples] == 0;
  });
}

std::vector<Pieces> add_synchronized(Graph& graph, const Mesh& mesh, Resharder& resharder, Operator op,
                                     std::span<const Division> divisions, std::span<const Pieces> inputs) {
  Synchronizer synchronizer(graph, mesh, resharder, op, divisions, inputs);
  if (is_training(op.contract())) return synchronizer.training();
  if (is_gradient(op.contract())) return synchronizer.gradient();
  return synchronizer.unbiased();
}

}  // namespace purine::parallel
