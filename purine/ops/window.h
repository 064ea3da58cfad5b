// The geometry of windows that slide over images: convolution and pooling.
#pragma once

#include <cstdint>
#include <string_view>

namespace purine::ops {

/// How windows slide along one dimension.
struct Window {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t before = 0;  ///< padding before the first element
  std::int64_t after = 0;   ///< padding after the last one
  std::int64_t dilation = 1;

  /// Elements from a window's first to its last.
  std::int64_t span() const { return dilation * (kernel - 1) + 1; }
  /// How many windows lie wholly in the padded extent; 0 or less if it is too small for one. With `ceil_mode`
  /// the last may go past the padding, but starts inside the elements or the padding before them.
  std::int64_t positions(std::int64_t extent, bool ceil_mode = false) const;
};

/// Throws Error(type, …) unless kernel, stride and dilation are at least 1 and the paddings at least 0;
/// `dimension` is `vertically` or `horizontally`.
void check_window(std::string_view type, const Window& window, std::string_view dimension);

/// The number of windows; throws Error(type, …) where there would be none.
std::int64_t checked_positions(std::string_view type, const Window& window, std::int64_t extent,
                               std::string_view dimension, bool ceil_mode = false);

}  // namespace purine::ops
