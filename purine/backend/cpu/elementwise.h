// Loops over elements for the CPU's kernels, divided into parts that workers share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "purine/program/kernel.h"

namespace purine::cpu {

/// How many parts an element-wise kernel of this size has: depends on the size alone, so that results never
/// depend on the number of workers. Small kernels stay whole, since a part costs about a microsecond.
inline int elementwise_parts(std::int64_t elements) {
  return static_cast<int>(std::clamp<std::int64_t>(elements / 65536, 1, 8));
}

/// Elements [first, second) of part `part` of `parts`, in multiples of 16 elements (a cache line of f32).
inline std::pair<std::int64_t, std::int64_t> part_range(std::int64_t elements, int part, int parts) {
  const std::int64_t lines = (elements + 15) / 16;
  const std::int64_t begin = lines * part / parts * 16;
  const std::int64_t end = std::min(elements, lines * (part + 1) / parts * 16);
  return {std::min(begin, elements), end};
}

/// A kernel that applies loop(x, y, count) to ranges of its input and output.
template <typename T, typename Loop>
std::unique_ptr<Kernel> elementwise_kernel(std::int64_t elements, Loop loop) {
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const auto [begin, end] = part_range(elements, call.part, parts);
        loop(call.input<T>(0) + begin, call.output<T>(0) + begin, end - begin);
      },
      parts);
}

/// The same with loop(a, b, y, count) for two inputs.
template <typename T, typename Loop>
std::unique_ptr<Kernel> elementwise_kernel_of_two(std::int64_t elements, Loop loop) {
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const auto [begin, end] = part_range(elements, call.part, parts);
        loop(call.input<T>(0) + begin, call.input<T>(1) + begin, call.output<T>(0) + begin, end - begin);
      },
      parts);
}

/// A kernel that makes its output the bytes of an input, with which it may share storage.
inline std::unique_ptr<Kernel> byte_copy_kernel(const BindContext& context, int input = 0) {
  const auto bytes = static_cast<std::int64_t>(context.output(0).bytes());
  const int parts = elementwise_parts(bytes / 4);
  return make_kernel(
      [=](const KernelCall& call) {
        const auto [begin, end] = part_range(bytes, call.part, parts);
        std::memmove(call.output<std::byte>(0) + begin, call.input<std::byte>(input) + begin,
                     static_cast<std::size_t>(end - begin));
      },
      parts);
}

/// Registers a kernel that bind(context, zero) makes, where the type of `zero` is the C++ type of input 0, a
/// floating tensor.
template <typename Bind>
void add_floating(KernelRegistry& registry, std::string_view type, Bind bind) {
  registry.add(type, [bind](const BindContext& context) {
    return with_floating(context.input(0).dtype, [&](auto zero) { return bind(context, zero); });
  });
}

}  // namespace purine::cpu
