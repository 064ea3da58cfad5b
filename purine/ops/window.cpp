#include "purine/ops/window.h"

#include <algorithm>

#include "purine/core/error.h"

namespace purine::ops {
namespace {

void check_least(std::string_view type, std::string_view what, std::int64_t value, std::int64_t least,
                 std::string_view dimension) {
  if (value < least) {
    throw Error(type, std::string(what) + " is " + std::to_string(value) + " " + std::string(dimension) +
                          ", at least " + std::to_string(least) + " is needed");
  }
}

}  // namespace

std::int64_t Window::positions(std::int64_t extent, bool ceil_mode) const {
  const std::int64_t room = extent + before + after - span();
  if (room < 0) return 0;
  std::int64_t count = room / stride + 1;
  if (ceil_mode && room % stride != 0 && count * stride < extent + before) ++count;
  return count;
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
                "a window spans " + std::to_string(window.span()) + " elements " + std::string(dimension) +
                    ", the padded image has " + std::to_string(extent + window.before + window.after),
                "make the kernel smaller or the image or its padding larger");
  }
  return count;
}

std::string list_text(std::span<const std::int64_t> values) {
  std::string text = "[";
  for (const std::int64_t value : values) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(value);
  }
  return text + "]";
}

}  // namespace purine::ops
