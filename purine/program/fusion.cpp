#include "purine/program/fusion.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "purine/ops/batch_normalization.h"
#include "purine/ops/convolution.h"
#include "purine/ops/pooling.h"
#include "purine/ops/sibling_convolution.h"

namespace purine::program {
namespace {

using ops::BatchNormalizationInference;
using ops::BatchNormalizationTraining;
using ops::BatchNormalizationTrainingGradient;

class Finder {
 public:
  Finder(Graph& graph, const std::vector<bool>& live)
      : graph_(graph), live_(live), consumers_(graph), read_from_outside_(graph.tensor_count(), false) {
    for (const Tensor tensor : graph.watched()) read_from_outside_[tensor.index()] = true;
    for (const Variable variable : graph.variables()) {
      if (variable.has_next()) read_from_outside_[variable.next().index()] = true;
    }
    result_.absorbed.resize(graph.operator_count(), false);
  }

  Fusions run() {
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) {
      if (!live_[i]) continue;
      const Operator op = graph_.op(i);
      // The fused operators have kernels on the CPU, which emulated devices run too.
      if (op.location().kind == DeviceKind::cuda) continue;
      if (op.type() == "relu") {
        if (!fuse_with_normalization(op)) swap_with_pooling(op);
      } else if (op.type() == "relu_gradient") {
        fuse_with_normalization_gradient(op);
      } else if (op.type() == "conv2d") {
        fuse_siblings(op);
      } else if (op.type() == "sum_n") {
        fuse_sibling_gradients(op);
      }
    }
    return std::move(result_);
  }

 private:
  /// The operator that alone reads a tensor, if it lies at the same location.
  std::optional<Operator> only_reader(Tensor tensor) {
    if (read_from_outside_[tensor.index()]) return std::nullopt;
    std::optional<Operator> reader;
    for (const std::uint32_t consumer : consumers_.of(tensor.index())) {
      if (!live_[consumer]) continue;
      if (reader) return std::nullopt;
      reader = graph_.op(consumer);
    }
    if (reader && !(reader->location() == tensor.location())) return std::nullopt;
    return reader;
  }

  /// Runs several operators as one at the place of one of them, before which all that they read is made.
  /// Where they cannot be, as too many are, they stay as they are.
  void fuse_all(const std::vector<Operator>& operators, Operator at, FusedOperator fused) {
    constexpr std::size_t most_operators = 15;
    if (operators.size() < 2 || operators.size() > most_operators) return;
    for (const Operator op : operators) {
      const std::string path = op.path();
      fused.path += fused.path.empty() ? path : " + " + path_beside(fused.path, path);
      result_.absorbed[op.index()] = true;
    }
    result_.fused.emplace(at.index(), std::move(fused));
  }

  /// What is left of a path without the scopes that it shares with another one.
  static std::string path_beside(std::string_view other, std::string_view path) {
    std::size_t shared = 0;
    for (std::size_t i = 0; i < std::min(other.size(), path.size()) && other[i] == path[i]; ++i) {
      if (path[i] == '/') shared = i + 1;
    }
    return std::string(path.substr(shared));
  }

  /// The tensor that ops::after has made another view of.
  static Tensor seen_through(Tensor view) {
    while (view.has_producer() && view.producer().type() == "after") view = view.producer().input(0);
    return view;
  }

  /// The batch normalisation whose result a rectifier rectifies, if the two run as one.
  std::optional<Operator> normalization_below(Operator relu) {
    const Tensor x = relu.input(0);
    if (!x.has_producer() || x.output_index() != 0) return std::nullopt;
    const Operator producer = x.producer();
    if (!is_plain_normalization(producer) || only_reader(x) != relu) return std::nullopt;
    return producer;
  }

  /// Batch normalisation alone.
  static bool is_plain_normalization(Operator op) {
    const bool is_one =
        op.type() == "batch_normalization_training" || op.type() == "batch_normalization_inference";
    return is_one && !options_of(op).relu && !options_of(op).adds;
  }

  struct NormalizationInSum {
    Operator normalization;
    Operator sum;
    Tensor other;  // what is added
  };
  /// The batch normalisation in a sum that a rectifier rectifies, if the three run as one: where it is, the
  /// other summand must have been made.
  std::optional<NormalizationInSum> normalization_in_sum(Operator relu) {
    const Tensor y = relu.input(0);
    if (!y.has_producer() || y.producer().type() != "add" || only_reader(y) != relu) return std::nullopt;
    const Operator sum = y.producer();
    for (const int i : {0, 1}) {
      const Tensor x = sum.input(i);
      const Tensor other = sum.input(1 - i);
      const bool possible = x.has_producer() && x.output_index() == 0 && x.info() == other.info() &&
                            is_plain_normalization(x.producer()) && only_reader(x) == sum;
      if (!possible) continue;
      const Operator normalization = x.producer();
      if (other.has_producer() && other.producer().index() >= normalization.index()) continue;
      return NormalizationInSum{normalization, sum, other};
    }
    return std::nullopt;
  }

  static ops::BatchNormalizationOptions options_of(Operator normalization) {
    return dynamic_cast<const ops::BatchNormalizationContract&>(normalization.contract()).options();
  }

  bool fuse_with_normalization(Operator relu) {
    if (const std::optional<Operator> normalization = normalization_below(relu)) {
      fuse_all({*normalization, relu}, *normalization, rectified(*normalization, relu, {}));
      return true;
    }
    if (const auto found = normalization_in_sum(relu)) {
      fuse_all({found->normalization, found->sum, relu}, found->normalization,
               rectified(found->normalization, relu, found->other));
      return true;
    }
    return false;
  }

  /// What reads a rectifier's result, where that is max pooling to fewer elements and, in training, the
  /// rectifier's gradient of the pooling's.
  struct Pooled {
    Operator pooling;
    std::optional<Operator> relu_gradient;
  };
  std::optional<Pooled> pooling_above(Operator relu) {
    const Tensor y = relu.output();
    if (read_from_outside_[y.index()]) return std::nullopt;
    std::optional<Operator> pooling;
    std::optional<Operator> gradient;
    for (const std::uint32_t consumer : consumers_.of(y.index())) {
      if (!live_[consumer]) continue;
      const Operator op = graph_.op(consumer);
      std::optional<Operator>& found = op.type() == "max_pool2d" ? pooling : gradient;
      const bool is_known =
          op.type() == "max_pool2d" || (op.type() == "relu_gradient" && op.input(1) == y && op.input(0) != y);
      if (found || !is_known || !(op.location() == relu.location())) return std::nullopt;
      found = op;
    }
    if (!pooling || pooling->output().shape().elements() >= y.shape().elements()) return std::nullopt;
    if (gradient && !is_of_pooling(gradient->input(0), *pooling, *gradient)) return std::nullopt;
    return Pooled{*pooling, gradient};
  }

  static ops::Pool2dOptions pooling_options(Operator pooling) {
    return dynamic_cast<const ops::WindowPoolContract&>(pooling.contract()).options();
  }

  /// Whether a tensor, which one reader alone reads, is the gradient by a pooling's image; and whether the
  /// gradient by the pooling's result is nobody's but that one's.
  bool is_of_pooling(Tensor image_gradient, Operator pooling, Operator reader) {
    if (!image_gradient.has_producer() || only_reader(image_gradient) != reader) return false;
    const Operator op = image_gradient.producer();
    return op.type() == "max_pool2d_gradient" && op.location() == pooling.location() &&
           op.input(1) == pooling.output(1) && op.input(0).has_producer() && only_reader(op.input(0)) == op &&
           pooling_options(op) == pooling_options(pooling);
  }

  void swap_with_pooling(Operator relu) {
    const std::optional<Pooled> found = pooling_above(relu);
    if (!found) return;
    const Operator pooling = found->pooling;
    const Tensor maxima = pooling.output();
    swap(relu, pooling,
         {{{pooling.contract_pointer(), relu.inputs(), pooling.outputs(), pooling.path()},
           {relu.contract_pointer(), {maxima}, {maxima}, relu.path()}}});
    if (!found->relu_gradient) return;
    const Operator rectified = *found->relu_gradient;
    const Operator spread = rectified.input(0).producer();
    const Tensor gradient = spread.input(0);
    swap(rectified, spread,
         {{{rectified.contract_pointer(), {gradient, maxima}, {gradient}, rectified.path()},
           {spread.contract_pointer(), spread.inputs(), rectified.outputs(), spread.path()}}});
  }

  void swap(Operator rectifier, Operator pooling, std::array<FusedOperator, 2> swapped) {
    result_.absorbed[rectifier.index()] = true;
    result_.absorbed[pooling.index()] = true;
    result_.swapped.emplace(pooling.index(), std::move(swapped));
  }

  static FusedOperator rectified(Operator normalization, Operator relu, std::optional<Tensor> summand) {
    ops::BatchNormalizationOptions options = options_of(normalization);
    options.relu = true;
    options.adds = summand.has_value();
    FusedOperator fused;
    if (normalization.type() == "batch_normalization_training") {
      fused.contract = std::make_shared<BatchNormalizationTraining>(options);
    } else {
      fused.contract = std::make_shared<BatchNormalizationInference>(options);
    }
    fused.inputs = normalization.inputs();
    if (summand) fused.inputs.push_back(*summand);
    fused.outputs = normalization.outputs();
    fused.outputs[0] = relu.output();
    return fused;
  }

  void fuse_with_normalization_gradient(Operator relu_gradient) {
    // Of a rectifier after batch normalisation, the gradient sees by x whether y was above 0.
    const Tensor y = relu_gradient.input(1);
    if (!y.has_producer() || y.producer().type() != "relu") return;
    const std::optional<Operator> normalization = normalization_below(y.producer());
    if (!normalization || normalization->type() != "batch_normalization_training") return;
    const std::optional<Operator> gradient = only_reader(relu_gradient.output());
    if (!gradient || gradient->type() != "batch_normalization_training_gradient") return;
    // Inputs y's gradient, x, scale, mean, variance; the normalisation has x, scale, shift and makes mean,
    // variance.
    // One that runs again for the backward pass reads x through a view.
    const bool belong = gradient->input(0) == relu_gradient.output() &&
                        gradient->input(1) == seen_through(normalization->input(0)) &&
                        gradient->input(2) == normalization->input(1) &&
                        gradient->input(3) == normalization->output(1) &&
                        gradient->input(4) == normalization->output(2);
    if (!belong) return;
    ops::BatchNormalizationOptions options = options_of(*gradient);
    options.relu = true;
    FusedOperator fused;
    fused.contract = std::make_shared<BatchNormalizationTrainingGradient>(options);
    fused.inputs = gradient->inputs();
    fused.inputs[0] = relu_gradient.input(0);
    fused.inputs.push_back(normalization->input(2));
    fused.outputs = gradient->outputs();
    fuse_all({relu_gradient, *gradient}, *gradient, std::move(fused));
  }

  /// A convolution, or its gradient by the image, that siblings can have: of single pixels, without a bias.
  static bool is_sibling(Operator op, std::string_view type) {
    if (op.type() != type || op.input_count() != 2) return false;
    const auto& options = dynamic_cast<const ops::Conv2dContract&>(op.contract()).options();
    const Shape& weight = op.input(1).shape();
    return weight[2] == 1 && weight[3] == 1 && options.groups == 1 &&
           options.stride == std::array<std::int64_t, 2>{1, 1} &&
           options.padding == std::array<std::int64_t, 4>{0, 0, 0, 0};
  }

  /// Runs all that read an image where the first of them is.
  void fuse_siblings(Operator first) {
    if (!is_sibling(first, "conv2d")) return;
    const Tensor image = first.input(0);
    FusedOperator fused;
    fused.contract = std::make_shared<ops::SiblingConv2d>();
    fused.inputs = {image};
    std::vector<Operator> siblings;
    for (const std::uint32_t consumer : consumers_.of(image.index())) {
      const Operator op = graph_.op(consumer);
      if (!live_[consumer] || !is_sibling(op, "conv2d") || !(op.location() == first.location())) continue;
      if (op.index() < first.index()) return;  // the first of them has seen to all
      const Tensor weight = op.input(1);
      if (op.input(0) != image || (weight.has_producer() && weight.producer().index() > first.index()))
        continue;
      siblings.push_back(op);
      fused.inputs.push_back(weight);
      fused.outputs.push_back(op.output());
    }
    fuse_all(siblings, first, std::move(fused));
  }

  /// Where a sum has gradients by an image among its summands, computes them and adds them up in one.
  void fuse_sibling_gradients(Operator sum) {
    std::vector<Operator> siblings;
    std::vector<Tensor> others;
    for (const Tensor summand : sum.inputs()) {
      const bool alone = summand.has_producer() && is_sibling(summand.producer(), "conv2d_input_gradient") &&
                         only_reader(summand) == sum &&
                         std::find(siblings.begin(), siblings.end(), summand.producer()) == siblings.end();
      if (alone) {
        siblings.push_back(summand.producer());
      } else {
        others.push_back(summand);
      }
    }
    if (siblings.empty() || others.size() > 1) return;
    FusedOperator fused;
    fused.contract = std::make_shared<ops::SiblingConv2dInputGradient>(siblings.size(), !others.empty());
    for (const Operator op : siblings) fused.inputs.push_back(op.input(0));
    for (const Operator op : siblings) fused.inputs.push_back(op.input(1));
    fused.inputs.insert(fused.inputs.end(), others.begin(), others.end());
    fused.outputs = {sum.output()};
    siblings.push_back(sum);
    fuse_all(siblings, sum, std::move(fused));
  }

  Graph& graph_;
  const std::vector<bool>& live_;
  Consumers consumers_;
  std::vector<bool> read_from_outside_;  // by tensor
  Fusions result_;
};

}  // namespace

std::size_t Fusions::saved() const {
  return static_cast<std::size_t>(std::count(absorbed.begin(), absorbed.end(), true)) - fused.size() -
         2 * swapped.size();
}

Fusions find_fusions(Graph& graph, const std::vector<bool>& live) {
  return Finder(graph, live).run();
}

}  // namespace purine::program
