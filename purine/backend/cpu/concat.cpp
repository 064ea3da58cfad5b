#include "purine/ops/concat.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "purine/backend/cpu/elementwise.h"
#include "purine/backend/cpu/layout.h"
#include "purine/program/kernel.h"

namespace purine::cpu {
namespace {

/// In memory, the output is rows of one segment an input: the elements of the axis, and all that lies inside
/// of it. A part is a range of bytes of the output.
std::unique_ptr<Kernel> bind_concat(const BindContext& context) {
  const int axis = context.as<ops::Concat>().axis();
  const auto element = static_cast<std::int64_t>(size_of(context.output(0).dtype));
  std::vector<std::int64_t> ends;  // of the segments in a row, in bytes
  std::int64_t row = 0;
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    const AxisView view(context.inputs[i].shape, context.input_layouts[i], axis);
    row += view.extent * view.inner * element;
    ends.push_back(row);
  }
  const std::int64_t elements = context.output(0).shape.elements();
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        std::byte* y = call.output<std::byte>(0);
        const auto [first, last] = part_range(elements, call.part, parts);
        const std::int64_t end = last * element;
        std::int64_t at = first * element;
        if (at == end) return;
        auto segment =
            static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), at % row) - ends.begin());
        while (at < end) {
          const std::int64_t begins = segment == 0 ? 0 : ends[segment - 1];
          const std::int64_t length = ends[segment] - begins;
          const std::int64_t place = at % row - begins;
          const std::int64_t count = std::min(length - place, end - at);
          const std::byte* x = call.input<std::byte>(static_cast<int>(segment)) + at / row * length + place;
          if (x != y + at) std::memcpy(y + at, x, static_cast<std::size_t>(count));  // else it was made there
          at += count;
          do {  // segments may be empty
            segment = segment + 1 == ends.size() ? 0 : segment + 1;
          } while (ends[segment] == (segment == 0 ? 0 : ends[segment - 1]));
        }
      },
      parts);
}

std::unique_ptr<Kernel> bind_slice(const BindContext& context) {
  const auto& slice = context.as<ops::Slice>();
  const auto element = static_cast<std::int64_t>(size_of(context.output(0).dtype));
  const AxisView view(context.input(0).shape, context.input_layouts[0], slice.axis());
  const std::int64_t input_row = view.extent * view.inner * element;
  const std::int64_t output_row = (slice.end() - slice.begin()) * view.inner * element;
  const std::int64_t skipped = slice.begin() * view.inner * element;
  const std::int64_t elements = context.output(0).shape.elements();
  const int parts = elementwise_parts(elements);
  return make_kernel(
      [=](const KernelCall& call) {
        const std::byte* x = call.input<std::byte>(0);
        std::byte* y = call.output<std::byte>(0);
        const auto [first, last] = part_range(elements, call.part, parts);
        const std::int64_t end = last * element;
        for (std::int64_t at = first * element; at < end;) {
          const std::int64_t place = at % output_row;
          const std::int64_t count = std::min(output_row - place, end - at);
          std::memcpy(y + at, x + at / output_row * input_row + skipped + place,
                      static_cast<std::size_t>(count));
          at += count;
        }
      },
      parts);
}

}  // namespace

void register_concat(KernelRegistry& registry) {
  registry.add("concat", &bind_concat);
  registry.add("slice", &bind_slice);
}

}  // namespace purine::cpu
