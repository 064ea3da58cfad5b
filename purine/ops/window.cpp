#include "purine/ops/window.h"

#include <fmt/format.h>

#include <algorithm>

#include "purine/core/error.h"

namespace purine::ops {
namespace {

void check_least(std::string_view type, std::string_view what, std::int64_t value, std::int64_t least,
                 std::string_view dimension) {
  if (value < least) {
    throw Error(type, fmt::format("{} is {} {}, at least {} is needed", what, value, dimension, least));
  }
}

}  // namespace

std::int64_t Window::positions(std::int64_t extent, bool ceil_mode) const {
  std::int64_t room = extent + before + after - span();
  if (ceil_mode) room += stride - 1;
  if (room < 0) return 0;
  const std::int64_t count = room / stride + 1;
  const bool starts_outside = (count - 1) * stride >= extent + before;
  return ceil_mode && starts_outside ? count - 1 : count;
}

void check_window(std::string_view type, const Window& window, std::string_view dimension) {
  check_least(type, "the kernel", window.kernel, 1, dimension);
  check_least(type, "the stride", window.stride, 1, dimension);
  check_least(type, "the dilation", window.dilation, 1, dimension);
  check_least(type, "the padding", std::min(window.before, window.after), 0, dimension);
}

std::int64_t checked_positions(std::string_view type, const Window& window, std::int64_t extent,
                               std::string_view dimension, bool ceil_mode) {
  const std::int64_t count = window.positions(extent, ceil_mode);
  if (count < 1) {
    throw Error(type,
                fmt::format("a window spans {} elements {}, the padded image has {}", window.span(),
                            dimension, extent + window.before + window.after),
                "make the kernel smaller or the image or its padding larger");
  }
  return count;
}

}  // namespace purine::ops
