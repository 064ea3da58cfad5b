#include "purine/data/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "purine/core/error.h"
#include "purine/data/decoders.h"
#include "purine/data/file.h"

namespace purine::data {

void Image::resize(int new_height, int new_width, int new_channels) {
  height = new_height;
  width = new_width;
  channels = new_channels;
  top = left = 0;
  pixels.resize(row_bytes() * static_cast<std::size_t>(height));
}

void convert_channels(Image& image, int channels) {
  PURINE_CHECK(channels == 1 || channels == 3);
  PURINE_CHECK(image.channels == 1 || image.channels == 3);
  if (image.channels == channels) return;
  const std::size_t count = static_cast<std::size_t>(image.height) * static_cast<std::size_t>(image.width);
  if (channels == 3) {
    image.resize(image.height, image.width, 3);
    std::uint8_t* pixels = image.pixels.data();
    // From the end, so that no grey value is overwritten before it is read.
    for (std::size_t i = count; i-- > 0;) {
      const std::uint8_t grey = pixels[i];
      pixels[3 * i] = pixels[3 * i + 1] = pixels[3 * i + 2] = grey;
    }
    return;
  }
  std::uint8_t* pixels = image.pixels.data();
  for (std::size_t i = 0; i < count; ++i) {
    // The weights times 2^16; they add up to 2^16, so that equal channels stay what they are.
    const std::uint32_t sum = 19595U * pixels[3 * i] + 38470U * pixels[3 * i + 1] + 7471U * pixels[3 * i + 2];
    pixels[i] = static_cast<std::uint8_t>((sum + 0x8000U) >> 16);
  }
  image.resize(image.height, image.width, 1);
}

void turn_upright(Image& image, int orientation) {
  if (orientation < 2 || orientation > 8) return;
  Image upright;
  const bool transposed = orientation >= 5;
  upright.resize(transposed ? image.width : image.height, transposed ? image.height : image.width,
                 image.channels);
  // The orientation says at which sides of the upright image the stored row 0 and column 0 lie: row 0 at the
  // bottom for 3 and 4, at the right for 6 and 7; column 0 at the right for 2 and 3, at the bottom for 7
  // and 8.
  const bool reverse_row = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool reverse_column = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const std::size_t channels = static_cast<std::size_t>(image.channels);
  for (int y = 0; y < upright.height; ++y) {
    std::uint8_t* to = upright.row(y);
    for (int x = 0; x < upright.width; ++x) {
      int row = transposed ? x : y;
      int column = transposed ? y : x;
      if (reverse_row) row = image.height - 1 - row;
      if (reverse_column) column = image.width - 1 - column;
      const std::uint8_t* from = image.row(row) + channels * static_cast<std::size_t>(column);
      for (std::size_t c = 0; c < channels; ++c) to[channels * static_cast<std::size_t>(x) + c] = from[c];
    }
  }
  image = std::move(upright);
}

std::string_view name_of(ImageFormat format) {
  return format == ImageFormat::jpeg ? "JPEG" : "PNG";
}

std::unique_ptr<Decoder> open_image(std::span<const std::byte> bytes, const DecodeOptions& options) {
  constexpr std::array<unsigned char, 3> jpeg_start = {0xff, 0xd8, 0xff};
  constexpr std::array<unsigned char, 8> png_start = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  const auto starts_with = [&](auto start) {
    return bytes.size() >= start.size() && std::memcmp(bytes.data(), start.data(), start.size()) == 0;
  };
  if (starts_with(jpeg_start)) return internal::open_jpeg(bytes, options);
  if (starts_with(png_start)) return internal::open_png(bytes, options);
  if (bytes.empty()) throw Error("image", "the file is empty");
  throw Error("image", "is neither a JPEG nor a PNG image", "other formats have to be converted first");
}

Image read_image(const std::string& path, const DecodeOptions& options) {
  try {
    std::vector<std::byte> bytes;
    read_file(path, bytes);
    Image image;
    open_image(bytes, options)->decode(image);
    return image;
  } catch (const Error& error) {
    throw error.at(path);
  }
}

namespace internal {

void check_pixels(std::int64_t width, std::int64_t height, const DecodeOptions& options) {
  if (width < 1 || height < 1) {
    throw Error("image", fmt::format("has {} x {} pixels", width, height));
  }
  if (width > options.max_pixels / height) {
    throw Error("image",
                fmt::format("has {} x {} pixels, the limit is {} pixels", width, height, options.max_pixels));
  }
}

}  // namespace internal

}  // namespace purine::data
