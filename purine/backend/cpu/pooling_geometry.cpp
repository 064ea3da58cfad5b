#include "purine/backend/cpu/pooling_geometry.h"

namespace purine::cpu {

PoolGeometry::PoolGeometry(const Shape& image, const Shape& pooled, const ops::Pool2dOptions& options,
                           Layout image_layout, DType element_dtype)
    : channels(image[1]),
      height(image[2]),
      width(image[3]),
      out_height(pooled[2]),
      out_width(pooled[3]),
      vertical(options.vertical()),
      horizontal(options.horizontal()),
      count_include_pad(options.count_include_pad),
      layout(image_layout),
      dtype(element_dtype),
      index_dtype(options.index_dtype()) {}

std::size_t PoolGeometry::scratch_bytes() const {
  if (layout == Layout::channels_last) return static_cast<std::size_t>(pooled_elements()) * size_of(dtype);
  const auto image_pixels = static_cast<std::size_t>(height * width);
  const auto pooled_pixels = static_cast<std::size_t>(out_height * out_width);
  return static_cast<std::size_t>(block) *
         ((image_pixels + pooled_pixels) * size_of(dtype) + pooled_pixels * size_of(index_dtype));
}

}  // namespace purine::cpu
