// The one field of EXIF that changes what an image shows.
#pragma once

#include <cstddef>
#include <span>

namespace purine::data {

/// The orientation (1 to 8) that an EXIF block holds: `tiff` starts with the TIFF header (`II*` or `MM*`),
/// after JPEG's `Exif\0\0`. 1, upright, for a block that is damaged or doesn't say.
int exif_orientation(std::span<const std::byte> tiff);

}  // namespace purine::data
