// Image files made in memory, for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "purine/data/image.h"

namespace purine::test {

using Bytes = std::vector<std::uint8_t>;

struct JpegOptions {
  enum class Colors : std::uint8_t { grey, rgb, ycc, cmyk, ycck };
  Colors colors = Colors::ycc;
  int quality = 95;
  bool progressive = false;
  /// A scan for each of three channels, not one for all.
  bool separate_scans = false;
  /// CMYK's marker, without which readers take the inks as they are.
  bool adobe = true;
  /// The APP1 segment's content; empty writes none.
  Bytes exif = {};
  int restart_interval = 0;
};

/// The JPEG file of an image whose pixels have as many channels as the colours (1, 3 or 4, as stored).
Bytes jpeg_file(const data::Image& image, const JpegOptions& options = {});

struct PngOptions {
  enum class Colors : std::uint8_t { grey, grey_alpha, palette, rgb, rgba };
  Colors colors = Colors::rgb;
  int bits = 8;
  bool interlaced = false;
  Bytes palette = {};  ///< red, green, blue, red, …
  Bytes palette_alpha = {};
  Bytes exif = {};  ///< of the eXIf chunk
};

/// The PNG file of an image; `rows` are the stored bytes, as many rows as the height.
Bytes png_file(int width, const std::vector<Bytes>& rows, const PngOptions& options = {});

/// The PNG file of an image of 1 or 3 channels.
Bytes png_file(const data::Image& image);

/// `Exif\0\0` and a TIFF block that holds an orientation between two other fields.
Bytes exif_segment(int orientation, bool big_endian = false);

/// An image from a function of y, x and channel.
data::Image make_image(int height, int width, int channels, const std::function<int(int, int, int)>& value);

/// The decoded image.
data::Image decoded(const Bytes& bytes, const data::DecodeOptions& options = {});

/// A picture of waves, smooth enough for JPEG to keep it well.
data::Image waves(int height, int width, int channels);

std::span<const std::byte> as_bytes(const Bytes& bytes);
std::string_view as_text(const Bytes& bytes);

}  // namespace purine::test
