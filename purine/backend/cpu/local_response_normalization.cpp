#include "purine/ops/local_response_normalization.h"

#include "purine/backend/cpu/batch_parts.h"
#include "purine/backend/cpu/local_response_normalization_loops.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

/// The least elements in a part: some tens of microseconds.
constexpr double responses_per_part = 32768;

std::int64_t pixels_of(const Shape& shape) {
  std::int64_t pixels = 1;
  for (int dimension = 2; dimension < shape.rank(); ++dimension) pixels *= shape[dimension];
  return pixels;
}

template <typename Function>
std::unique_ptr<Kernel> bind(const BindContext& context, Function function) {
  const TensorInfo& x = context.output(0);
  const auto& contract = context.as<ops::LocalResponseNormalizationContract>();
  // Without pixels, or with one, the layouts are the same.
  const std::int64_t pixels = pixels_of(x.shape);
  const bool channels_last = context.output_layouts[0] == Layout::channels_last || pixels == 1;
  const ResponseGeometry geometry{x.shape[1], pixels, channels_last, x.dtype, contract.options()};
  const std::int64_t batch = x.shape[0];
  const int parts = batch_parts(batch, static_cast<double>(x.shape.elements()), responses_per_part);
  return make_kernel(
      [=](const KernelCall& call) {
        const auto [begin, end] = batch_range(batch, call.part, parts);
        function(geometry, call, begin, end);
      },
      parts, geometry.scratch_bytes());
}

}  // namespace

void register_local_response_normalization(KernelRegistry& registry) {
  registry.add("local_response_normalization", [](const BindContext& context) {
    return bind(context, [](const ResponseGeometry& geometry, const KernelCall& call, std::int64_t begin,
                            std::int64_t end) {
      normalize_responses(geometry, call.inputs[0], call.outputs[0], call.scratch, begin, end);
    });
  });
  registry.add("local_response_normalization_gradient", [](const BindContext& context) {
    return bind(context, [](const ResponseGeometry& geometry, const KernelCall& call, std::int64_t begin,
                            std::int64_t end) {
      normalize_responses_gradient(geometry, call.inputs[0], call.inputs[1], call.outputs[0], call.scratch,
                                   begin, end);
    });
  });
}

}  // namespace purine::cpu
