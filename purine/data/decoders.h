// The decoders behind open_image.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "purine/data/image.h"

namespace purine::data::internal {

std::unique_ptr<Decoder> open_jpeg(std::span<const std::byte> bytes, const DecodeOptions& options);
std::unique_ptr<Decoder> open_png(std::span<const std::byte> bytes, const DecodeOptions& options);

/// Throws where an image of this size is larger than the options allow.
void check_pixels(std::int64_t width, std::int64_t height, const DecodeOptions& options);

/// Whether the stored rows and columns of an image of this EXIF orientation run against the upright one's.
/// The orientation says at which sides the stored row 0 and column 0 lie: row 0 at the bottom for 3 and 4, at
/// the right for 6 and 7; column 0 at the right for 2 and 3, at the bottom for 7 and 8.
inline bool reverses_rows(int orientation) {
  return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}
inline bool reverses_columns(int orientation) {
  return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

}  // namespace purine::data::internal
