#include "purine/ops/random.h"

#include <cstdint>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/random_range.h"
#include "purine/core/random.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

/// Fills the tensor with factor * value + offset, computed in f64, for the random values of
/// make_block(random, number of the block), four at a time.
template <typename T, typename MakeBlock>
std::unique_ptr<Kernel> bind_random(const BindContext& context, double factor, double offset,
                                    MakeBlock make_block) {
  const auto& contract = static_cast<const ops::RandomTensor&>(context.contract);
  const NumberedRows numbered(contract.info().shape, Layout::plain, contract.excerpt());
  const int parts = elementwise_parts(4 * numbered.rows.elements());
  const std::uint64_t seed = context.seed;
  const std::uint64_t stream = context.stream;
  return make_kernel(
      [=](const KernelCall& call) {
        const Random random(seed, stream, static_cast<std::uint64_t>(call.iteration));
        T* y = call.output<T>(0);
        const auto [begin, end] = part_range(numbered.rows.elements(), call.part, parts);
        const std::int64_t step = numbered.rows.row_strides()[0];
        numbered.rows.run(begin, end, [&](std::int64_t position, const auto& offsets, std::int64_t count) {
          // Where rows are not of neighbouring numbers, each element is a range of its own.
          const std::int64_t range = step == 1 ? count : 1;
          for (std::int64_t i = 0; i < count; i += range) {
            for_blocks(
                static_cast<std::uint64_t>(numbered.first + offsets[0] + i * step), range,
                [&](std::uint64_t block) { return make_block(random, block); },
                [&](std::int64_t k, float value) {
                  y[position + i + k] = static_cast<T>(factor * static_cast<double>(value) + offset);
                });
          }
        });
      },
      parts);
}

std::array<float, 4> uniform_block(const Random& random, std::uint64_t block) {
  return random.uniforms(block);
}

std::array<float, 4> normal_block(const Random& random, std::uint64_t block) {
  return random.normals(block);
}

}  // namespace

void register_random(KernelRegistry& registry) {
  registry.add("random_uniform", [](const BindContext& context) {
    const auto& contract = context.as<ops::RandomUniform>();
    return with_floating(contract.info().dtype, [&](auto zero) {
      return bind_random<decltype(zero)>(context, contract.high() - contract.low(), contract.low(),
                                         &uniform_block);
    });
  });
  registry.add("random_normal", [](const BindContext& context) {
    const auto& contract = context.as<ops::RandomNormal>();
    return with_floating(contract.info().dtype, [&](auto zero) {
      return bind_random<decltype(zero)>(context, contract.deviation(), contract.mean(), &normal_block);
    });
  });
}

}  // namespace purine::cpu
