#include "purine/ops/pooling.h"

#include "purine/backend/cpu/batch_parts.h"
#include "purine/backend/cpu/pooling_loops.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

/// The least elements of the image in a part: some tens of microseconds.
constexpr double pooled_per_part = 65536;

/// A kernel that calls function(geometry, call, first sample, last sample) for each part of the batch.
template <typename Function>
std::unique_ptr<Kernel> divide_samples(const Shape& image, const PoolGeometry& geometry, Function function) {
  const std::int64_t batch = image[0];
  const int parts = batch_parts(batch, static_cast<double>(image.elements()), pooled_per_part);
  return make_kernel(
      [=](const KernelCall& call) {
        const auto [begin, end] = batch_range(batch, call.part, parts);
        function(geometry, call, begin, end);
      },
      parts, geometry.scratch_bytes());
}

std::unique_ptr<Kernel> bind_max_pool2d(const BindContext& context) {
  const PoolGeometry geometry(context.input(0).shape, context.output(0).shape,
                              context.as<ops::MaxPool2d>().options(), context.input_layouts[0],
                              context.input(0).dtype);
  return divide_samples(
      context.input(0).shape, geometry,
      [](const PoolGeometry& pool, const KernelCall& call, std::int64_t begin, std::int64_t end) {
        max_pool(pool, call.inputs[0], call.outputs[0], call.outputs[1], call.scratch, begin, end);
      });
}

std::unique_ptr<Kernel> bind_max_pool2d_gradient(const BindContext& context) {
  const PoolGeometry geometry(context.output(0).shape, context.input(0).shape,
                              context.as<ops::MaxPool2dGradient>().options(), context.input_layouts[0],
                              context.input(0).dtype);
  return divide_samples(
      context.output(0).shape, geometry,
      [](const PoolGeometry& pool, const KernelCall& call, std::int64_t begin, std::int64_t end) {
        max_pool_gradient(pool, call.inputs[0], call.inputs[1], call.outputs[0], call.scratch, begin, end);
      });
}

std::unique_ptr<Kernel> bind_max_pool2d_select(const BindContext& context) {
  const PoolGeometry geometry(context.input(0).shape, context.output(0).shape,
                              context.as<ops::MaxPool2dSelect>().options(), context.input_layouts[0],
                              context.input(0).dtype);
  return divide_samples(
      context.input(0).shape, geometry,
      [](const PoolGeometry& pool, const KernelCall& call, std::int64_t begin, std::int64_t end) {
        max_pool_select(pool, call.inputs[0], call.inputs[1], call.outputs[0], begin, end);
      });
}

/// Averaging over the whole image is pooling with one window.
ops::Pool2dOptions whole_image(const Shape& image) {
  return {.kernel = {image[2], image[3]}, .stride = {1, 1}};
}

std::unique_ptr<Kernel> bind_average(const BindContext& context, const ops::Pool2dOptions& options) {
  const PoolGeometry geometry(context.input(0).shape, context.output(0).shape, options,
                              context.input_layouts[0], context.input(0).dtype);
  return divide_samples(
      context.input(0).shape, geometry,
      [](const PoolGeometry& pool, const KernelCall& call, std::int64_t begin, std::int64_t end) {
        average_pool(pool, call.inputs[0], call.outputs[0], call.scratch, begin, end);
      });
}

std::unique_ptr<Kernel> bind_average_gradient(const BindContext& context, const ops::Pool2dOptions& options) {
  const PoolGeometry geometry(context.output(0).shape, context.input(0).shape, options,
                              context.input_layouts[0], context.input(0).dtype);
  return divide_samples(
      context.output(0).shape, geometry,
      [](const PoolGeometry& pool, const KernelCall& call, std::int64_t begin, std::int64_t end) {
        average_pool_gradient(pool, call.inputs[0], call.outputs[0], call.scratch, begin, end);
      });
}

}  // namespace

void register_pooling(KernelRegistry& registry) {
  registry.add("max_pool2d", bind_max_pool2d);
  registry.add("max_pool2d_gradient", bind_max_pool2d_gradient);
  registry.add("max_pool2d_select", bind_max_pool2d_select);
  registry.add("average_pool2d", [](const BindContext& context) {
    return bind_average(context, context.as<ops::AveragePool2d>().options());
  });
  registry.add("average_pool2d_gradient", [](const BindContext& context) {
    return bind_average_gradient(context, context.as<ops::AveragePool2dGradient>().options());
  });
  registry.add("global_average_pool2d", [](const BindContext& context) {
    return bind_average(context, whole_image(context.input(0).shape));
  });
  registry.add("global_average_pool2d_gradient", [](const BindContext& context) {
    return bind_average_gradient(context, whole_image(context.output(0).shape));
  });
}

}  // namespace purine::cpu
