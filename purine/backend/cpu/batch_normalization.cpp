#include "purine/ops/batch_normalization.h"

#include "purine/backend/cpu/batch_normalization_loops.h"
#include "purine/backend/cpu/batch_parts.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

/// The least elements in a part: some tens of microseconds.
constexpr double normalized_per_part = 65536;

ChannelGeometry geometry_of(const TensorInfo& x, Layout layout,
                            const ops::BatchNormalizationOptions& options) {
  std::int64_t pixels = 1;
  for (int dimension = 2; dimension < x.shape.rank(); ++dimension) pixels *= x.shape[dimension];
  // Without pixels, or with one, the layouts are the same.
  const bool channels_last = layout == Layout::channels_last || pixels == 1;
  return {x.shape[0], x.shape[1], pixels, channels_last, x.dtype, options.epsilon, options.relu};
}

/// The least channels of a part where they are last in memory: to go through it in short pieces is up to
/// three times slower than to go straight through.
constexpr std::int64_t last_channels_per_part = 256;

/// A kernel that calls function(call, first channel, last channel) for each part of the channels: statistics
/// belong to one channel, so no part needs another.
template <typename Function>
std::unique_ptr<Kernel> divide_channels(const ChannelGeometry& geometry, Function function) {
  const std::int64_t channels = geometry.channels;
  const auto elements = static_cast<double>(channels * geometry.elements_per_channel());
  const int parts = batch_parts(geometry.channels_last ? channels / last_channels_per_part : channels,
                                elements, normalized_per_part);
  return make_kernel(
      [=](const KernelCall& call) {
        const auto [begin, end] = batch_range(channels, call.part, parts);
        function(call, begin, end);
      },
      parts, geometry.scratch_bytes((channels + parts - 1) / parts));
}

std::unique_ptr<Kernel> bind_training(const BindContext& context) {
  const ops::BatchNormalizationOptions options = context.as<ops::BatchNormalizationTraining>().options();
  const ChannelGeometry geometry = geometry_of(context.input(0), context.input_layouts[0], options);
  return divide_channels(geometry, [=](const KernelCall& call, std::int64_t begin, std::int64_t end) {
    const auto& in = call.inputs;
    const auto& out = call.outputs;
    const std::byte* summand = options.adds ? in[3] : nullptr;
    batch_statistics(geometry, in[0], out[1], out[2], call.scratch, begin, end);
    batch_normalize(geometry, in[0], in[1], in[2], out[1], out[2], summand, out[0], call.scratch, begin, end);
  });
}

std::unique_ptr<Kernel> bind_inference(const BindContext& context) {
  const ops::BatchNormalizationOptions options = context.as<ops::BatchNormalizationInference>().options();
  const ChannelGeometry geometry = geometry_of(context.input(0), context.input_layouts[0], options);
  return divide_channels(geometry, [=](const KernelCall& call, std::int64_t begin, std::int64_t end) {
    const auto& in = call.inputs;
    const std::byte* summand = options.adds ? in[5] : nullptr;
    batch_normalize(geometry, in[0], in[1], in[2], in[3], in[4], summand, call.outputs[0], call.scratch,
                    begin, end);
  });
}

std::unique_ptr<Kernel> bind_gradient(const BindContext& context, bool through_statistics) {
  const ops::BatchNormalizationOptions options = context.as<ops::BatchNormalizationContract>().options();
  const ChannelGeometry geometry = geometry_of(context.input(1), context.input_layouts[1], options);
  return divide_channels(geometry, [=](const KernelCall& call, std::int64_t begin, std::int64_t end) {
    const auto& in = call.inputs;
    const auto& out = call.outputs;
    const std::byte* shift = options.relu ? in[5] : nullptr;
    batch_normalize_gradient(geometry, in[0], in[1], in[2], shift, in[3], in[4], through_statistics, out[0],
                             out[1], out[2], call.scratch, begin, end);
  });
}

}  // namespace

void register_batch_normalization(KernelRegistry& registry) {
  registry.add("batch_normalization_training", bind_training);
  registry.add("batch_normalization_inference", bind_inference);
  registry.add("batch_normalization_training_gradient",
               [](const BindContext& context) { return bind_gradient(context, true); });
  registry.add("batch_normalization_inference_gradient",
               [](const BindContext& context) { return bind_gradient(context, false); });
}

}  // namespace purine::cpu
