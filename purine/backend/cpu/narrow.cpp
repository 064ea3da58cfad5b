#include "purine/ops/narrow.h"

#include <bit>
#include <cstdint>

#include "purine/backend/cpu/elementwise.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

// Branch-free, so that compilers make vectors of the loops.

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  const std::uint32_t rounded = bits + 0x7fffU + (bits >> 16U & 1U);
  // Not a number stays that, whatever bits of it are cut off.
  return static_cast<std::uint16_t>((is_nan ? bits | 0x400000U : rounded) >> 16U);
}

float from_bf16(std::uint16_t narrow) {
  return std::bit_cast<float>(std::uint32_t{narrow} << 16U);
}

std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000U;
  const std::uint32_t magnitude = bits ^ sign;
  // 15 less of exponent bias per 112 << 23; the addition rounds to even, and what it carries over counts.
  const std::uint32_t normal = (magnitude + 0xfffU + (magnitude >> 13U & 1U) - (112U << 23U)) >> 13U;
  // Below 2^-14: added to 0.5, whose last bit is 2^-24, the floating addition rounds to multiples of that.
  const float half = 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + half) -
                                  std::bit_cast<std::uint32_t>(half);
  const std::uint32_t beyond = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;  // 65536 and more, and NaN
  const std::uint32_t finite = magnitude < 0x38800000U ? subnormal : normal;
  return static_cast<std::uint16_t>((magnitude >= 0x47800000U ? beyond : finite) | sign >> 16U);
}

float from_f16(std::uint16_t narrow) {
  const std::uint32_t sign = (narrow & 0x8000U) << 16U;
  const std::uint32_t shifted = (narrow & 0x7fffU) << 13U;
  const std::uint32_t exponent = shifted & 0x0f800000U;
  const std::uint32_t normal = shifted + (112U << 23U);
  const std::uint32_t beyond = normal + (112U << 23U);
  // With exponent 2^-14 and the leading bit that subnormal numbers don't have, which is taken off again.
  const float subnormal =
      std::bit_cast<float>(shifted + (113U << 23U)) - std::bit_cast<float>(std::uint32_t{113} << 23U);
  const std::uint32_t bits = exponent == 0             ? std::bit_cast<std::uint32_t>(subnormal)
                             : exponent == 0x0f800000U ? beyond
                                                       : normal;
  return std::bit_cast<float>(bits | sign);
}

template <typename T, typename Convert>
std::unique_ptr<Kernel> narrow_kernel(std::int64_t elements, Convert convert) {
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const T* x = call.input<T>(0);
        auto* y = call.output<std::uint16_t>(0);
        const auto [begin, end] = part_range(elements, call.part, parts);
        for (std::int64_t i = begin; i < end; ++i) y[i] = convert(static_cast<float>(x[i]));
      },
      parts);
}

template <typename T, typename Convert>
std::unique_ptr<Kernel> widen_kernel(std::int64_t elements, Convert convert) {
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const auto* x = call.input<std::uint16_t>(0);
        T* y = call.output<T>(0);
        const auto [begin, end] = part_range(elements, call.part, parts);
        for (std::int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(convert(x[i]));
      },
      parts);
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "narrow numbers are stored low byte first");

void register_narrow(KernelRegistry& registry) {
  add_floating(registry, "narrow", [](const BindContext& context, auto zero) {
    using T = decltype(zero);
    const std::int64_t elements = context.input(0).shape.elements();
    const bool is_f16 = context.as<ops::Narrow>().format() == ops::NarrowFormat::f16;
    return is_f16 ? narrow_kernel<T>(elements, [](float x) { return to_f16(x); })
                  : narrow_kernel<T>(elements, [](float x) { return to_bf16(x); });
  });
  registry.add("widen", [](const BindContext& context) {
    const std::int64_t elements = context.output(0).shape.elements();
    const bool is_f16 = context.as<ops::Widen>().format() == ops::NarrowFormat::f16;
    return with_floating(context.output(0).dtype, [&](auto zero) {
      using T = decltype(zero);
      return is_f16 ? widen_kernel<T>(elements, [](std::uint16_t x) { return from_f16(x); })
                    : widen_kernel<T>(elements, [](std::uint16_t x) { return from_bf16(x); });
    });
  });
}

}  // namespace purine::cpu
