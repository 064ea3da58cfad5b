// An operator for tests of graphs, plans and schedules: its outputs are a hash of all its inputs, so that any
// value read at the wrong moment shows in everything behind it.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "purine/graph/graph.h"
#include "purine/ops/copy.h"
#include "purine/program/kernel.h"

namespace purine::test {

inline std::uint64_t mix_bits(std::uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 29;
  value *= 0xc4ceb9fe1a85ec53ULL;
  value ^= value >> 32;
  return value;
}

/// Any number of i64 inputs; outputs of the given numbers of elements.
class Mix final : public Contract {
 public:
  struct Options {
    std::int64_t salt = 0;
    std::vector<std::int64_t> outputs = {1};
    std::vector<Sharing> sharing = {};
    bool brings_samples = false;
    bool depends_on_iteration = false;
    int microseconds = 0;  // slept by the kernel
    int parts = 1;
    std::int64_t throws_at = -1;  // the iteration in which the kernel throws
  };

  explicit Mix(Options options) : options_(std::move(options)) {}
  const Options& options() const { return options_; }

  std::string_view type() const override { return "mix"; }
  std::string attributes() const override { return "salt=" + std::to_string(options_.salt); }
  std::vector<TensorInfo> infer(std::span<const TensorInfo>) const override {
    std::vector<TensorInfo> infos;
    for (const std::int64_t elements : options_.outputs) infos.push_back({{elements}, DType::i64});
    return infos;
  }
  std::vector<Tensor> gradient(const GradientContext&) const override { return not_differentiable(); }
  std::vector<SplitRule> split_rules(std::span<const TensorInfo>) const override { return {}; }
  ContractPtr piece(const SplitRule&, const Piece&, std::span<const TensorInfo>) const override {
    return self();
  }
  Cost cost(std::span<const TensorInfo>, std::span<const TensorInfo>) const override {
    return {0, 1e3 * options_.microseconds};
  }
  std::vector<Sharing> sharing() const override { return options_.sharing; }
  LayoutRule layouts() const override { return {}; }
  bool brings_samples() const override { return options_.brings_samples; }

 private:
  Options options_;
};

/// Hash of an operator's inputs. Views hold the same content as their input, so a mix whose only sharing is a
/// view is the identity.
class MixKernel final : public Kernel {
 public:
  explicit MixKernel(const BindContext& context) : options_(context.as<Mix>().options()) {
    for (const TensorInfo& info : context.inputs) input_elements_.push_back(info.shape.elements());
  }

  int parts() const override { return options_.parts; }

  void run(const KernelCall& call) override {
    if (options_.microseconds > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(options_.microseconds));
    if (call.iteration == options_.throws_at) throw Error("mix", "was told to fail");
    std::uint64_t hash = mix_bits(static_cast<std::uint64_t>(options_.salt) + 0x1234567);
    if (options_.depends_on_iteration) hash = mix_bits(hash + static_cast<std::uint64_t>(call.iteration));
    for (std::size_t i = 0; i < input_elements_.size(); ++i) {
      const auto* values = call.input<std::int64_t>(static_cast<int>(i));
      for (std::int64_t k = 0; k < input_elements_[i]; ++k) {
        hash = mix_bits(hash * 31 + static_cast<std::uint64_t>(values[k]));
      }
    }
    for (std::size_t i = 0; i < options_.outputs.size(); ++i) {
      auto* values = call.output<std::int64_t>(static_cast<int>(i));
      for (std::int64_t k = call.part; k < options_.outputs[i]; k += options_.parts) {
        values[k] = static_cast<std::int64_t>(mix_bits(hash + static_cast<std::uint64_t>(k) + 77 * i));
      }
    }
  }

 private:
  Mix::Options options_;
  std::vector<std::int64_t> input_elements_;
};

inline void register_mix(KernelRegistry& registry) {
  registry.add("mix", [](const BindContext& context) { return std::make_unique<MixKernel>(context); });
}

inline Operator mix(Graph& graph, const std::vector<Tensor>& inputs, Mix::Options options) {
  return graph.add(std::make_shared<Mix>(std::move(options)), inputs);
}

/// A random training-like graph: sources that run ahead, variables updated in place or not, operators that
/// read what came before, some in place, and a watched scalar that depends on all that is read by nobody.
struct RandomGraphOptions {
  int operators = 60;
  int variables = 6;
  int sources = 2;
  int max_microseconds = 0;
  bool multiple_parts = false;
  std::vector<Location> locations = {Location{}};  // vertices lie at random ones of these
};

inline void build_random_graph(Graph& graph, std::uint32_t seed, const RandomGraphOptions& options) {
  std::mt19937 random(seed);
  const auto below = [&](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  std::int64_t salt = static_cast<std::int64_t>(seed) * 1000;
  const auto some_options = [&] {
    Mix::Options made;
    made.salt = ++salt;
    made.outputs = {1 + below(64)};
    if (below(4) == 0) made.outputs.push_back(1 + below(200));
    made.microseconds = options.max_microseconds > 0 ? below(options.max_microseconds) : 0;
    if (options.multiple_parts && below(3) == 0) made.parts = 2 + below(4);
    return made;
  };
  const auto some_location = [&] {
    return options.locations[static_cast<std::size_t>(below(static_cast<int>(options.locations.size())))];
  };
  // Adds an operator at a location, with its inputs copied there.
  const auto mix_at = [&](Location location, std::vector<Tensor> inputs, const Mix::Options& made) {
    for (Tensor& input : inputs) input = ops::copy(input, location);
    const auto placement = graph.at(location);
    return mix(graph, inputs, made);
  };
  std::vector<Tensor> tensors;
  std::vector<Variable> variables;
  for (int i = 0; i < options.sources; ++i) {
    Mix::Options made = some_options();
    made.brings_samples = below(2) == 0;
    made.depends_on_iteration = true;
    for (const Tensor tensor : mix_at(some_location(), {}, made).outputs()) tensors.push_back(tensor);
  }
  for (int i = 0; i < options.variables; ++i) {
    Mix::Options initial;
    initial.salt = ++salt;
    initial.outputs = {1 + below(40)};
    const auto placement = graph.at(some_location());
    variables.push_back(graph.variable("variable_" + std::to_string(i), {{initial.outputs[0]}, DType::i64},
                                       std::make_shared<Mix>(initial)));
    tensors.push_back(variables.back());
  }
  for (int i = 0; i < options.operators; ++i) {
    std::vector<Tensor> inputs;
    const int count = 1 + below(3);
    for (int k = 0; k < count; ++k) {
      const int recent = std::min<int>(static_cast<int>(tensors.size()), below(3) == 0 ? 1000000 : 12);
      inputs.push_back(tensors[tensors.size() - 1 - static_cast<std::size_t>(below(recent))]);
    }
    Mix::Options made = some_options();
    if (below(2) == 0) {
      made.outputs[0] = inputs[0].shape().elements();
      made.parts = 1;  // a part would overwrite what another still reads
      made.sharing = {{0, 0, Sharing::Kind::overwrite}};
    }
    for (const Tensor tensor : mix_at(some_location(), inputs, made).outputs()) tensors.push_back(tensor);
  }
  for (const Variable variable : variables) {
    if (below(6) == 0) continue;  // constant
    if (below(5) == 0) {  // the next value is some other variable of the same size, or a tensor in hand
      for (const Tensor tensor : tensors) {
        if (tensor.info() == variable.info() && !(tensor == variable) &&
            tensor.location() == variable.location()) {
          graph.set_next(variable, tensor);
          break;
        }
      }
      if (variable.has_next()) continue;
    }
    Mix::Options update = some_options();
    update.outputs = {variable.shape().elements()};
    update.parts = 1;
    update.sharing = {{0, 0, Sharing::Kind::overwrite}};
    const Tensor other = tensors[static_cast<std::size_t>(below(static_cast<int>(tensors.size())))];
    const Tensor next = mix_at(variable.location(), {variable, other}, update).output();
    graph.set_next(variable, next);
    if (below(3) == 0) tensors.push_back(mix_at(some_location(), {next, variable}, some_options()).output());
  }
  std::vector<Tensor> last(
      tensors.end() - std::min<std::ptrdiff_t>(8, static_cast<std::ptrdiff_t>(tensors.size())),
      tensors.end());
  Mix::Options sum;
  sum.salt = ++salt;
  graph.watch(mix_at(some_location(), last, sum).output());
}

}  // namespace purine::test
