#include "purine/ops/random.h"

#include <fmt/format.h>

#include <cmath>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

Tensor random_uniform(Graph& graph, TensorInfo info, double low, double high, std::string_view name) {
  return graph.add(make_random_uniform(info, low, high), {}, name).output();
}

Tensor random_normal(Graph& graph, TensorInfo info, double mean, double deviation, std::string_view name) {
  return graph.add(make_random_normal(info, mean, deviation), {}, name).output();
}

ContractPtr make_random_uniform(TensorInfo info, double low, double high) {
  return std::make_shared<RandomUniform>(info, low, high);
}

ContractPtr make_random_normal(TensorInfo info, double mean, double deviation) {
  return std::make_shared<RandomNormal>(info, mean, deviation);
}

std::vector<TensorInfo> RandomTensor::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 0);
  if (!is_floating(info_.dtype)) {
    throw Error(type(), "the tensor is " + info_.text() + ", a floating dtype is needed");
  }
  return {info_};
}

std::vector<SplitRule> RandomTensor::split_rules(std::span<const TensorInfo>) const {
  return split_every_dimension(info_, 0, 1);
}

Cost RandomTensor::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 20);
}

std::string RandomTensor::common_attributes() const {
  return "info=" + info_.text() + (excerpt_ ? excerpt_->text() : std::string());
}

TensorInfo RandomTensor::piece_info(const SplitRule& rule, const Piece& piece) const {
  TensorInfo info = info_;
  info.shape.set(rule.outputs[0], piece_extent(info_.shape[rule.outputs[0]], rule, piece));
  return info;
}

RandomUniform::RandomUniform(TensorInfo info, double low, double high, std::optional<Excerpt> excerpt)
    : RandomTensor(info, excerpt), low_(low), high_(high) {
  if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high)) {
    throw Error(type(), fmt::format("[{}, {}) is no range of finite values", low, high));
  }
}

std::string RandomUniform::attributes() const {
  return fmt::format("{} low={} high={}", common_attributes(), low_, high_);
}

ContractPtr RandomUniform::piece(const SplitRule& rule, const Piece& piece,
                                 std::span<const TensorInfo>) const {
  return std::make_shared<RandomUniform>(
      piece_info(rule, piece), low_, high_,
      piece_excerpt(excerpt(), info().shape, rule.outputs[0], rule, piece));
}

RandomNormal::RandomNormal(TensorInfo info, double mean, double deviation, std::optional<Excerpt> excerpt)
    : RandomTensor(info, excerpt), mean_(mean), deviation_(deviation) {
  if (!(deviation >= 0) || !std::isfinite(deviation) || !std::isfinite(mean)) {
    throw Error(type(), fmt::format("mean {} and deviation {} are no normal distribution", mean, deviation));
  }
}

std::string RandomNormal::attributes() const {
  return fmt::format("{} mean={} deviation={}", common_attributes(), mean_, deviation_);
}

ContractPtr RandomNormal::piece(const SplitRule& rule, const Piece& piece,
                                std::span<const TensorInfo>) const {
  return std::make_shared<RandomNormal>(piece_info(rule, piece), mean_, deviation_,
                                        piece_excerpt(excerpt(), info().shape, rule.outputs[0], rule, piece));
}

void register_random(Registry& registry) {
  const auto uniform = [](Shape shape) {
    return [=](DType dtype) { return make_random_uniform({shape, dtype}, -1, 3); };
  };
  const auto normal = [](Shape shape) {
    return [=](DType dtype) { return make_random_normal({shape, dtype}, 0.5, 2); };
  };
  registry.add("random_uniform", {{"vector", uniform({17}), {}, false},
                                  {"matrix", uniform({5, 7}), {}, false},
                                  {"image", uniform({2, 3, 4, 5}), {}, false},
                                  {"scalar", uniform({}), {}, false}});
  registry.add("random_normal", {{"vector", normal({17}), {}, false},
                                 {"matrix", normal({5, 7}), {}, false},
                                 {"image", normal({2, 3, 4, 5}), {}, false}});
}

}  // namespace purine::ops
