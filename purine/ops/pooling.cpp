#include "purine/ops/pooling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "purine/ops/contract_helpers.h"
#include "purine/ops/registry.h"

namespace purine::ops {
namespace {

std::int64_t pooled_extent(std::string_view type, const Window& window, std::int64_t extent,
                           std::string_view dimension, bool ceil_mode) {
  check_window(type, window, dimension);
  if (std::max(window.before, window.after) >= window.kernel) {
    throw Error(type,
                fmt::format("the padding is {} {}, the kernel {}", std::max(window.before, window.after),
                            dimension, window.kernel),
                "padding must be smaller than the kernel: every window needs an element");
  }
  return checked_positions(type, window, extent, dimension, ceil_mode);
}

/// Throws unless an output's gradient or indices have the shape that pooling gives.
void check_pooled(std::string_view type, const Shape& expected, const TensorInfo& info,
                  std::string_view what) {
  if (!(info.shape == expected)) {
    throw Error(type, fmt::format("{} is {}, pooling gives {}", what, info.text(), expected.text()));
  }
}

void check_index(std::string_view type, const Pool2dOptions& options, const Shape& expected,
                 const TensorInfo& info) {
  check_pooled(type, expected, info, "the maxima's indices");
  if (info.dtype != options.index_dtype()) {
    throw Error(type, fmt::format("the maxima's indices are {}, pooling gives {}", info.text(),
                                  name_of(options.index_dtype())));
  }
}

std::array<std::int64_t, 2> image_extents(const Shape& image) {
  return {image[2], image[3]};
}

Shape with_extents(const Shape& image, std::array<std::int64_t, 2> extents) {
  return {image[0], image[1], extents[0], extents[1]};
}

}  // namespace

Tensor max_pool2d(Tensor x, Pool2dOptions options, std::string_view name) {
  return x.graph().add(std::make_shared<MaxPool2d>(options), {x}, name).output();
}

Tensor average_pool2d(Tensor x, Pool2dOptions options, std::string_view name) {
  return x.graph().add(std::make_shared<AveragePool2d>(options), {x}, name).output();
}

Tensor global_average_pool2d(Tensor x, std::string_view name) {
  return x.graph().add(std::make_shared<GlobalAveragePool2d>(), {x}, name).output();
}

std::vector<SplitRule> PoolContract::split_rules(std::span<const TensorInfo> inputs) const {
  const auto [input_count, output_count] = arity();
  std::vector<SplitRule> rules;
  for (int dimension = 0; dimension < 2; ++dimension) {
    rules.push_back({std::vector<int>(static_cast<std::size_t>(input_count), dimension),
                     std::vector<int>(static_cast<std::size_t>(output_count), dimension),
                     inputs[0].shape[dimension], false});
  }
  return rules;
}

std::string WindowPoolContract::attributes() const {
  return fmt::format("kernel={} stride={} padding={} ceil_mode={}", options_.kernel, options_.stride,
                     options_.padding, options_.ceil_mode);
}

Cost WindowPoolContract::cost(std::span<const TensorInfo> inputs, std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  // Every window once, however the operator goes through them.
  const std::int64_t windows = std::min(inputs[0].shape.elements(), outputs[0].shape.elements());
  cost.operations =
      static_cast<double>(windows) * static_cast<double>(options_.kernel[0] * options_.kernel[1]);
  return cost;
}

Shape WindowPoolContract::pooled(const Shape& image) const {
  if (image[2] < 1 || image[3] < 1) {
    throw Error(type(),
                fmt::format("an image has {} x {} elements, at least 1 x 1 is needed", image[2], image[3]));
  }
  return {image[0], image[1],
          pooled_extent(type(), options_.vertical(), image[2], "vertically", options_.ceil_mode),
          pooled_extent(type(), options_.horizontal(), image[3], "horizontally", options_.ceil_mode)};
}

std::vector<TensorInfo> MaxPool2d::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_image(type(), inputs[0], "x");
  const Shape shape = pooled(inputs[0].shape);
  return {{shape, inputs[0].dtype}, {shape, options_.index_dtype()}};
}

std::vector<Tensor> MaxPool2d::gradient(const GradientContext& context) const {
  const auto contract =
      std::make_shared<MaxPool2dGradient>(options_, image_extents(context.input(0).shape()));
  return {context.op().graph().add(contract, {context.output_gradient(0), context.output(1)}).output()};
}

std::string MaxPool2dGradient::attributes() const {
  return WindowPoolContract::attributes() + fmt::format(" extents={}", extents_);
}

std::vector<TensorInfo> MaxPool2dGradient::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  check_image(type(), inputs[0], "the output's gradient");
  const Shape image = with_extents(inputs[0].shape, extents_);
  const Shape expected = pooled(image);
  check_pooled(type(), expected, inputs[0], "the output's gradient");
  check_index(type(), options_, expected, inputs[1]);
  return {{image, inputs[0].dtype}};
}

std::vector<Tensor> MaxPool2dGradient::gradient(const GradientContext& context) const {
  Graph& graph = context.op().graph();
  return {
      graph.add(std::make_shared<MaxPool2dSelect>(options_), {context.output_gradient(0), context.input(1)})
          .output(),
      {}};
}

std::vector<TensorInfo> MaxPool2dSelect::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 2);
  check_image(type(), inputs[0], "x");
  const Shape shape = pooled(inputs[0].shape);
  check_index(type(), options_, shape, inputs[1]);
  return {{shape, inputs[0].dtype}};
}

std::vector<Tensor> MaxPool2dSelect::gradient(const GradientContext& context) const {
  const auto contract =
      std::make_shared<MaxPool2dGradient>(options_, image_extents(context.input(0).shape()));
  return {context.op().graph().add(contract, {context.output_gradient(0), context.input(1)}).output(), {}};
}

std::string AveragePool2d::attributes() const {
  return WindowPoolContract::attributes() + fmt::format(" count_include_pad={}", options_.count_include_pad);
}

std::vector<TensorInfo> AveragePool2d::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_image(type(), inputs[0], "x");
  return {{pooled(inputs[0].shape), inputs[0].dtype}};
}

std::vector<Tensor> AveragePool2d::gradient(const GradientContext& context) const {
  const auto contract =
      std::make_shared<AveragePool2dGradient>(options_, image_extents(context.input(0).shape()));
  return {context.op().graph().add(contract, {context.output_gradient(0)}).output()};
}

std::string AveragePool2dGradient::attributes() const {
  return WindowPoolContract::attributes() +
         fmt::format(" count_include_pad={} extents={}", options_.count_include_pad, extents_);
}

std::vector<TensorInfo> AveragePool2dGradient::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_image(type(), inputs[0], "the output's gradient");
  const Shape image = with_extents(inputs[0].shape, extents_);
  check_pooled(type(), pooled(image), inputs[0], "the output's gradient");
  return {{image, inputs[0].dtype}};
}

std::vector<Tensor> AveragePool2dGradient::gradient(const GradientContext& context) const {
  return {average_pool2d(context.output_gradient(0), options_)};
}

std::vector<TensorInfo> GlobalAveragePool2d::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_image(type(), inputs[0], "x");
  const Shape& image = inputs[0].shape;
  if (image[2] * image[3] == 0) {
    throw Error(type(), fmt::format("x is {}: there is nothing to average", inputs[0].text()));
  }
  return {{{image[0], image[1], 1, 1}, inputs[0].dtype}};
}

std::vector<Tensor> GlobalAveragePool2d::gradient(const GradientContext& context) const {
  const auto contract =
      std::make_shared<GlobalAveragePool2dGradient>(image_extents(context.input(0).shape()));
  return {context.op().graph().add(contract, {context.output_gradient(0)}).output()};
}

Cost GlobalAveragePool2d::cost(std::span<const TensorInfo> inputs,
                               std::span<const TensorInfo> outputs) const {
  Cost cost = elementwise_cost(inputs, outputs, 0);
  cost.operations = static_cast<double>(inputs[0].shape.elements());
  return cost;
}

std::string GlobalAveragePool2dGradient::attributes() const {
  return fmt::format("extents={}", extents_);
}

std::vector<TensorInfo> GlobalAveragePool2dGradient::infer(std::span<const TensorInfo> inputs) const {
  check_input_count(type(), inputs, 1);
  check_image(type(), inputs[0], "the output's gradient");
  const Shape& gradient = inputs[0].shape;
  check_pooled(type(), {gradient[0], gradient[1], 1, 1}, inputs[0], "the output's gradient");
  return {{with_extents(gradient, extents_), inputs[0].dtype}};
}

std::vector<Tensor> GlobalAveragePool2dGradient::gradient(const GradientContext& context) const {
  return {global_average_pool2d(context.output_gradient(0))};
}

Cost GlobalAveragePool2dGradient::cost(std::span<const TensorInfo> inputs,
                                       std::span<const TensorInfo> outputs) const {
  return elementwise_cost(inputs, outputs, 1);
}

namespace {

struct PoolingSample {
  std::string name;
  Pool2dOptions options;
  Shape image;
};

std::vector<PoolingSample> pooling_samples() {
  return {{"halves", {}, {2, 3, 4, 6}},
          {"overlapping", {.kernel = {3, 3}, .stride = {2, 2}}, {2, 2, 7, 5}},
          {"same_extents", {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1, 1, 1}}, {1, 3, 4, 5}},
          {"asymmetric", {.kernel = {3, 2}, .stride = {2, 3}, .padding = {2, 0, 1, 1}}, {2, 2, 5, 7}},
          {"ceil_mode", {.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true}, {2, 3, 6, 7}},
          {"ceil_mode_padding",
           {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1, 1, 1}, .ceil_mode = true},
           {2, 2, 6, 4}},
          {"gaps", {.kernel = {2, 2}, .stride = {3, 3}}, {1, 2, 7, 8}},
          {"wide_window", {.kernel = {17, 16}, .stride = {1, 2}, .padding = {0, 8, 1, 8}}, {1, 1, 17, 18}}};
}

SampleInput sample_input(const TensorInfo& info, Values::Kind kind = Values::Kind::normal) {
  return {info, {kind}};
}

}  // namespace

void register_pooling(Registry& registry) {
  std::vector<Sample> maximum;
  std::vector<Sample> maximum_gradient;
  std::vector<Sample> select;
  std::vector<Sample> average;
  std::vector<Sample> average_gradient;
  for (const PoolingSample& sample : pooling_samples()) {
    const Pool2dOptions options = sample.options;
    const std::array<std::int64_t, 2> extents = image_extents(sample.image);
    const TensorInfo image{sample.image, DType::f32};
    const std::vector<TensorInfo> outputs = MaxPool2d(options).infer(std::vector{image});
    const std::int64_t window = options.kernel[0] * options.kernel[1];
    const SampleInput index{outputs[1], {Values::Kind::integer, window}, false};
    maximum.push_back({sample.name,
                       [options](DType) { return std::make_shared<MaxPool2d>(options); },
                       {sample_input(image, Values::Kind::distinct)},
                       true,
                       true});
    maximum_gradient.push_back(
        {sample.name,
         [options, extents](DType) { return std::make_shared<MaxPool2dGradient>(options, extents); },
         {sample_input(outputs[0]), index},
         true,
         true});
    select.push_back({sample.name,
                      [options](DType) { return std::make_shared<MaxPool2dSelect>(options); },
                      {sample_input(image), index},
                      true,
                      true});
    for (const bool count_include_pad : {true, false}) {
      Pool2dOptions average_options = options;
      average_options.count_include_pad = count_include_pad;
      const std::string name = sample.name + (count_include_pad ? "" : "_without_padding");
      average.push_back({name,
                         [=](DType) { return std::make_shared<AveragePool2d>(average_options); },
                         {sample_input(image)},
                         true,
                         true});
      average_gradient.push_back(
          {name,
           [=](DType) { return std::make_shared<AveragePool2dGradient>(average_options, extents); },
           {sample_input(outputs[0])},
           true,
           true});
    }
  }
  registry.add("max_pool2d", std::move(maximum));
  registry.add("max_pool2d_gradient", std::move(maximum_gradient));
  registry.add("max_pool2d_select", std::move(select));
  registry.add("average_pool2d", std::move(average));
  registry.add("average_pool2d_gradient", std::move(average_gradient));
  registry.add("global_average_pool2d", {{"image",
                                          [](DType) { return std::make_shared<GlobalAveragePool2d>(); },
                                          {sample_input({{2, 5, 3, 4}, DType::f32})},
                                          true,
                                          true}});
  registry.add("global_average_pool2d_gradient",
               {{"image",
                 [](DType) {
                   return std::make_shared<GlobalAveragePool2dGradient>(std::array<std::int64_t, 2>{3, 4});
                 },
                 {sample_input({{2, 5, 1, 1}, DType::f32})},
                 true,
                 true}});
}

}  // namespace purine::ops
