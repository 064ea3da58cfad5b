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

}  // namespace purine::data::internal
