// What every operator type promises without running: registration, text, cost and errors.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "purine/graph/graph.h"
#include "tests/ops/sweep.h"

namespace purine::test {
namespace {

/// Infers; an Error must begin with the type in brackets. Anything else that is thrown fails the test.
bool infers(const Contract& contract, std::span<const TensorInfo> inputs) {
  try {
    contract.infer(inputs);
    return true;
  } catch (const Error& error) {
    const std::string expected = "[" + std::string(contract.type()) + "] ";
    EXPECT_EQ(std::string(error.what()).substr(0, expected.size()), expected) << error.what();
    EXPECT_FALSE(error.message().empty());
    return false;
  }
}

/// The inputs of the sample's operator, by number, that a gradient flows to.
std::vector<std::size_t> inputs_with_gradient(const ops::Sample& sample) {
  Graph graph;
  std::vector<Tensor> inputs;
  std::vector<bool> needed;
  for (const TensorInfo& info : sample_infos(sample, DType::f64)) {
    inputs.push_back(graph.input("input." + std::to_string(inputs.size()), info));
    needed.push_back(is_floating(info.dtype));
  }
  const Operator op = graph.add(sample.contract(DType::f64), inputs);
  std::vector<Tensor> output_gradients;
  bool flows = false;
  for (const Tensor output : op.outputs()) {
    const std::string name = "gradient." + std::to_string(output_gradients.size());
    output_gradients.push_back(is_floating(output.dtype()) ? graph.input(name, output.info()) : Tensor());
    flows = flows || output_gradients.back().valid();
  }
  std::vector<std::size_t> found;
  if (!flows || std::find(needed.begin(), needed.end(), true) == needed.end()) return found;
  const std::vector<Tensor> made = op.contract().gradient({op, output_gradients, needed});
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i].valid() && needed[i]) found.push_back(i);
  }
  return found;
}

TEST(ContractSweep, OperatorsAndKernelsAreTheSame) {
  std::set<std::string> types;
  for (const ops::OperatorType& entry : registry().types()) types.insert(entry.type);
  const std::vector<std::string> kernels = cpu_kernels().types();
  EXPECT_EQ(types, std::set<std::string>(kernels.begin(), kernels.end()));
}

TEST(ContractSweep, SaysItsTypeAndAttributes) {
  for (const ops::OperatorType& entry : registry().types()) {
    SCOPED_TRACE(entry.type);
    std::set<std::string> names;
    for (const ops::Sample& sample : entry.samples) {
      SCOPED_TRACE(sample.name);
      EXPECT_TRUE(names.insert(sample.name).second) << "a second sample of this name";
      const ContractPtr contract = sample.contract(DType::f32);
      EXPECT_EQ(contract->type(), entry.type);
      const std::string attributes = contract->attributes();
      EXPECT_EQ(attributes.find('\n'), std::string::npos);
      EXPECT_EQ(sample.contract(DType::f32)->attributes(), attributes);
      EXPECT_TRUE(attributes.empty() || attributes.find('=') != std::string::npos) << attributes;
    }
  }
}

TEST(ContractSweep, CostIsFiniteAndNotNegative) {
  for_each_sample([](const ops::Sample& sample) {
    const ContractPtr contract = sample.contract(DType::f32);
    const std::vector<TensorInfo> inputs = sample_infos(sample, DType::f32);
    const Cost cost = contract->cost(inputs, contract->infer(inputs));
    EXPECT_TRUE(std::isfinite(cost.operations) && cost.operations >= 0) << cost.operations;
    EXPECT_TRUE(std::isfinite(cost.bytes) && cost.bytes >= 0) << cost.bytes;
  });
}

TEST(ContractSweep, RefusesWrongNumbersOfInputs) {
  for_each_sample([](const ops::Sample& sample) {
    const ContractPtr contract = sample.contract(DType::f32);
    const std::vector<TensorInfo> inputs = sample_infos(sample, DType::f32);
    ASSERT_TRUE(infers(*contract, inputs));
    if (!inputs.empty()) {
      EXPECT_FALSE(infers(*contract, {}));
      infers(*contract, std::span(inputs).first(inputs.size() - 1));
    }
    // Lists of tensors of any length take one more; nobody takes a scalar more than seven times.
    std::vector<TensorInfo> more = inputs;
    for (int i = 0; i < 8; ++i) more.push_back({{}, DType::u8});
    EXPECT_FALSE(infers(*contract, more));
  });
}

TEST(ContractSweep, RefusesOrTakesOtherDtypesAndShapes) {
  for_each_sample([](const ops::Sample& sample) {
    const ContractPtr contract = sample.contract(DType::f32);
    const std::vector<TensorInfo> inputs = sample_infos(sample, DType::f32);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8}) {
        std::vector<TensorInfo> others = inputs;
        others[i].dtype = dtype;
        infers(*contract, others);
      }
      for (const Shape& shape : {Shape{}, Shape{7}, Shape{1, 1}, Shape{3, 1, 2}, Shape{2, 3, 1, 1, 5}}) {
        std::vector<TensorInfo> others = inputs;
        others[i].shape = shape;
        infers(*contract, others);
      }
    }
  });
}

TEST(ContractSweep, SharingAndRulesNameTensorsThatExist) {
  // Of operators with any number of inputs, some samples have fewer than the sharing names.
  std::map<std::pair<std::string, int>, int> samples_with;
  for_each_sample([&](const ops::Sample& sample) {
    const ContractPtr contract = sample.contract(DType::f32);
    const std::vector<TensorInfo> inputs = sample_infos(sample, DType::f32);
    const std::vector<TensorInfo> outputs = contract->infer(inputs);
    for (const Sharing& sharing : contract->sharing()) {
      int& samples = samples_with[{std::string(contract->type()), sharing.input}];
      if (static_cast<std::size_t>(sharing.input) < inputs.size()) ++samples;
      ASSERT_LT(static_cast<std::size_t>(sharing.output), outputs.size());
    }
    for (const SplitRule& rule : contract->split_rules(inputs)) {
      ASSERT_EQ(rule.inputs.size(), inputs.size());
      ASSERT_EQ(rule.outputs.size(), outputs.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (rule.inputs[i] == SplitRule::whole) continue;
        ASSERT_GE(rule.inputs[i], 0);
        EXPECT_EQ(inputs[i].shape[rule.inputs[i]] % rule.units, 0);
      }
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (rule.outputs[i] < 0) continue;
        EXPECT_EQ(outputs[i].shape[rule.outputs[i]] % rule.units, 0);
      }
    }
  });
  for (const auto& [use, samples] : samples_with) {
    EXPECT_GT(samples, 0) << use.first << " has no input " << use.second << " in any sample";
  }
}

TEST(ContractSweep, EveryGradientIsComparedWithFiniteDifferences) {
  std::map<std::pair<std::string, std::size_t>, int> samples_of;  // that compare it, by type and input
  for_each_sample([&](const ops::Sample& sample) {
    const std::string type(sample.contract(DType::f64)->type());
    for (const std::size_t input : inputs_with_gradient(sample)) {
      int& samples = samples_of[{type, input}];
      if (sample.differentiable && sample.inputs[input].differentiable) ++samples;
    }
  });
  EXPECT_TRUE(samples_of.contains({"conv2d", 2}));
  for (const auto& [gradient, samples] : samples_of) {
    EXPECT_GT(samples, 0) << gradient.first << " has a gradient by input " << gradient.second
                          << ", which no sample has as differentiable";
  }
}

}  // namespace
}  // namespace purine::test
