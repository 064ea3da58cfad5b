#include "purine/ops/reorder.h"

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {

std::string Reorder::attributes() const {
  return target_ == Layout::plain ? "target=plain" : "target=channels_last";
}

std::vector<TensorInfo> Reorder::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  if (inputs[0].shape.rank() != 4) {
    throw Error(type(), "x is " + inputs[0].text() + ", a tensor of rank 4 is needed");
  }
  return {inputs[0]};
}

std::vector<Tensor> Reorder::gradient(const GradientContext& context) const {
  return {context.output_gradient(0)};
}

std::vector<SplitRule> Reorder::split_rules(std::span<const TensorInfo> inputs) const {
  return split_every_dimension(inputs[0], 1, 1);
}

Cost Reorder::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 0);
}

void register_reorder(Registry& registry) {
  const SampleInput image{{{2, 19, 5, 7}, DType::f32}};
  const SampleInput bytes{{{3, 3, 17, 18}, DType::u8}, {Values::Kind::integer, 256}, false};
  registry.add(
      "reorder",
      {{"to_channels_last",
        [](DType) { return std::make_shared<Reorder>(Layout::channels_last); },
        {image},
        true,
        true},
       {"to_plain", [](DType) { return std::make_shared<Reorder>(Layout::plain); }, {image}, true, true},
       {"bytes", [](DType) { return std::make_shared<Reorder>(Layout::channels_last); }, {bytes}, false}});
}

}  // namespace purine::ops
