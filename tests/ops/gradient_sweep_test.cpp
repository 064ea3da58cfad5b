// Every operator's gradient, and where it has one the gradient's gradient, against finite differences in f64.
#include "purine/gradient/gradient.h"
#include "purine/graph/graph.h"
#include "purine/ops/binary.h"
#include "purine/ops/reduce.h"
#include "purine/ops/sum_n.h"
#include "tests/ops/sweep.h"
#include "tests/support/evaluate.h"

namespace purine::test {
namespace {

// The derivative from four values at distances h and 2 h: its error is h^4 / 30 times the fifth derivative,
// about 1e-13, plus rounding of the loss (some hundred terms of size 1) divided by h, about 1e-16 * 1e3 /
// 1e-3 = 1e-10. What is allowed leaves room for losses of size 1e3.
constexpr double h = 1e-3;
constexpr double allowed = 1e-7;

template <typename Function>
double derivative(const Function& function) {
  return (8 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12 * h);
}

double weight(std::size_t stream, std::int64_t element) {
  return static_cast<double>(Random(23, stream, 0).normal(static_cast<std::uint64_t>(element)));
}

/// A graph of one operator, whose loss is the sum of all floating outputs times fixed weights.
struct OneOperator {
  Graph graph;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::vector<Tensor> weights;  // inputs of the graph, one an output; not valid where that is not floating
  std::vector<Tensor> differentiable;
  Tensor loss;

  OneOperator(const ops::Sample& sample, const ContractPtr& contract, std::span<const TensorInfo> infos) {
    for (std::size_t i = 0; i < infos.size(); ++i) {
      inputs.push_back(graph.input("input." + std::to_string(i), infos[i]));
      if (sample.inputs[i].differentiable && is_floating(infos[i].dtype))
        differentiable.push_back(inputs.back());
    }
    outputs = graph.add(contract, inputs).outputs();
    loss = weighted_sum(outputs, "weight.");
  }

  Tensor weighted_sum(std::span<const Tensor> tensors, const std::string& name) {
    std::vector<Tensor> terms;
    for (const Tensor tensor : tensors) {
      if (!tensor.valid() || tensor.dtype() != DType::f64) continue;
      const Tensor by = graph.input(name + std::to_string(terms.size()), tensor.info());
      weights.push_back(by);
      terms.push_back(ops::sum(ops::multiply(tensor, by)));
    }
    return terms.empty() ? Tensor() : ops::sum_n(terms);
  }

  void set(Evaluator& evaluator, const std::vector<Array>& values) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) evaluator.set(inputs[i], values[i]);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      Array array(weights[i].info());
      for (std::int64_t k = 0; k < array.elements(); ++k) array.set(k, weight(i, k));
      evaluator.set(weights[i], array);
    }
  }
};

TEST(GradientSweep, MatchesFiniteDifferences) {
  for_each_sample([](const ops::Sample& sample) {
    if (!sample.differentiable) return;
    const ContractPtr contract = sample.contract(DType::f64);
    const std::vector<TensorInfo> infos = sample_infos(sample, DType::f64);
    std::vector<Array> values = draw_inputs(sample, infos);
    OneOperator made(sample, contract, infos);
    ASSERT_TRUE(made.loss.valid());
    const std::vector<Tensor> found = gradients(made.loss, made.differentiable);
    verify(made.graph);
    Evaluator evaluator(made.graph);
    made.set(evaluator, values);
    BoundOperator forward(contract, infos,
                          {.seed = 1, .stream = hash_text(made.outputs[0].producer().path())});
    const auto loss = [&] {
      const std::vector<Array> outputs = forward.run(values);
      double total = 0;
      std::size_t floating = 0;
      for (const Array& output : outputs) {
        if (output.dtype() != DType::f64) continue;
        for (std::int64_t k = 0; k < output.elements(); ++k) total += output.at(k) * weight(floating, k);
        ++floating;
      }
      return total;
    };
    for (std::size_t i = 0; i < made.differentiable.size(); ++i) {
      const Tensor input = made.differentiable[i];
      ASSERT_TRUE(found[i].valid()) << input.path();
      const Array gradient = evaluator.compute(found[i]);
      Array& value = values[static_cast<std::size_t>(
          std::find(made.inputs.begin(), made.inputs.end(), input) - made.inputs.begin())];
      Array expected(value.info());
      double largest = 1;
      for (std::int64_t k = 0; k < value.elements(); ++k) {
        const double centre = value.at(k);
        expected.set(k, derivative([&](double step) {
                       value.set(k, centre + step);
                       return loss();
                     }));
        value.set(k, centre);
        largest = std::max(largest, std::abs(expected.at(k)));
      }
      expect_close(gradient, expected, allowed * largest, "gradient by " + input.path());
    }
  });
}

TEST(GradientSweep, OfTheGradientMatchesFiniteDifferences) {
  for_each_sample([](const ops::Sample& sample) {
    if (!sample.twice_differentiable) return;
    const ContractPtr contract = sample.contract(DType::f64);
    const std::vector<TensorInfo> infos = sample_infos(sample, DType::f64);
    const std::vector<Array> values = draw_inputs(sample, infos);
    OneOperator made(sample, contract, infos);
    // The operator's inputs, and the weights, which are the gradients of its outputs: the first gradient
    // depends on both.
    std::vector<Tensor> variables = made.differentiable;
    variables.insert(variables.end(), made.weights.begin(), made.weights.end());
    const std::vector<Tensor> first = gradients(made.loss, made.differentiable);
    const Tensor loss = made.weighted_sum(first, "second_weight.");
    const std::vector<Tensor> second = gradients(loss, variables);
    verify(made.graph);
    Evaluator evaluator(made.graph);
    made.set(evaluator, values);
    // Along directions that move everything at once: the slope is the gradient times the direction.
    for (std::size_t direction = 0; direction < 4; ++direction) {
      double slope = 0;
      double largest = 1;
      std::vector<Array> centres;
      for (std::size_t i = 0; i < variables.size(); ++i) {
        centres.push_back(evaluator.compute(variables[i]));
        if (!second[i].valid()) continue;
        const Array gradient = evaluator.compute(second[i]);
        for (std::int64_t k = 0; k < gradient.elements(); ++k) {
          slope += gradient.at(k) * weight(100 + 10 * direction + i, k);
          largest = std::max(largest, std::abs(gradient.at(k)));
        }
      }
      // Steps of a quarter, so that a value 3 deviations out stays off the kinks.
      const auto move = [&](double step) {
        for (std::size_t i = 0; i < variables.size(); ++i) {
          Array moved = centres[i];
          for (std::int64_t k = 0; k < moved.elements(); ++k) {
            moved.set(k, moved.at(k) + step * weight(100 + 10 * direction + i, k));
          }
          evaluator.set(variables[i], moved);
        }
        return evaluator.compute(loss).at(0);
      };
      const double expected = derivative([&](double step) { return move(step / 4); }) * 4;
      move(0);
      double elements = 0;
      for (const Array& centre : centres) elements += static_cast<double>(centre.elements());
      EXPECT_NEAR(slope, expected, allowed * 10 * largest * std::sqrt(elements)) << "direction " << direction;
    }
  });
}

}  // namespace
}  // namespace purine::test
