#include "purine/ops/dropout.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/loops.h"
#include "purine/backend/cpu/random_bits.h"
#include "purine/backend/cpu/random_range.h"
#include "purine/core/random.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

template <typename T>
std::unique_ptr<Kernel> bind_dropout(const BindContext& context) {
  const auto& contract = context.as<ops::Dropout>();
  const NumberedRows numbered(context.input(0).shape, context.input_layouts[0], contract.excerpt());
  const auto probability = static_cast<float>(contract.probability());
  const auto factor = static_cast<T>(1 / (1 - contract.probability()));
  const auto apply = arithmetic_loops<T>().masked;
  const int parts = elementwise_parts(numbered.rows.elements());
  const std::uint64_t seed = context.seed;
  const std::uint64_t stream = context.stream;
  return make_kernel(
      [=](const KernelCall& call) {
        const Random random(seed, stream, static_cast<std::uint64_t>(call.iteration));
        std::uint8_t* mask = call.output<std::uint8_t>(1);
        const auto [begin, end] = part_range(numbered.rows.elements(), call.part, parts);
        const std::int64_t step = numbered.rows.row_strides()[0];
        numbered.rows.run(begin, end, [&](std::int64_t position, const auto& offsets, std::int64_t count) {
          std::array<std::uint32_t, 256> bits;
          for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(bits.size())) {
            const std::int64_t here = std::min(count - i, static_cast<std::int64_t>(bits.size()));
            random_bits(random, static_cast<std::uint64_t>(numbered.first + offsets[0] + i * step),
                        static_cast<std::uint64_t>(step), here, bits.data());
            for (std::int64_t k = 0; k < here; ++k) {
              mask[position + i + k] =
                  Random::uniform_of(bits[static_cast<std::size_t>(k)]) >= probability ? 1 : 0;
            }
          }
        });
        apply(call.input<T>(0) + begin, mask + begin, factor, call.output<T>(0) + begin, end - begin);
      },
      parts);
}

template <typename T>
std::unique_ptr<Kernel> bind_dropout_gradient(const BindContext& context) {
  const std::int64_t elements = context.input(0).shape.elements();
  const auto factor = static_cast<T>(1 / (1 - context.as<ops::DropoutGradient>().probability()));
  const auto apply = arithmetic_loops<T>().masked;
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const auto [begin, end] = part_range(elements, call.part, parts);
        apply(call.input<T>(0) + begin, call.input<std::uint8_t>(1) + begin, factor,
              call.output<T>(0) + begin, end - begin);
      },
      parts);
}

}  // namespace

void register_dropout(KernelRegistry& registry) {
  add_floating(registry, "dropout",
               [](const BindContext& context, auto zero) { return bind_dropout<decltype(zero)>(context); });
  add_floating(registry, "dropout_gradient", [](const BindContext& context, auto zero) {
    return bind_dropout_gradient<decltype(zero)>(context);
  });
}

}  // namespace purine::cpu
