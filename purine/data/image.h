// Decoded images, and the decoders of JPEG and PNG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace purine::data {

/// A decoded image: rows from the top, pixels from the left, channels interleaved; one channel is grey, three
/// are red, green and blue.
struct Image {
  int height = 0;
  int width = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;
  /// Where the picture's upper left corner lies, in pixels: not 0 only in one that was decoded at a part of
  /// its size and turned, where pixels that lie only partly within the picture come first.
  double top = 0;
  double left = 0;

  /// Makes room for an image of this size, with its corner at 0; the pixels' values are unspecified.
  void resize(int new_height, int new_width, int new_channels);
  std::size_t row_bytes() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
  }
  const std::uint8_t* row(int y) const { return pixels.data() + row_bytes() * static_cast<std::size_t>(y); }
  std::uint8_t* row(int y) { return pixels.data() + row_bytes() * static_cast<std::size_t>(y); }
};

/// The same image in the given number of channels: grey is repeated three times; colours become grey as
/// 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601), rounded.
void convert_channels(Image& image, int channels);

/// Turns an image that was stored with this EXIF orientation (1 to 8; anything else is taken as 1) upright.
void turn_upright(Image& image, int orientation);

enum class ImageFormat : std::uint8_t { jpeg, png };

/// `JPEG`, `PNG`.
std::string_view name_of(ImageFormat format);

/// What an image's header says.
struct ImageInfo {
  ImageFormat format = ImageFormat::jpeg;
  int height = 0;         ///< of the upright image
  int width = 0;          ///< of the upright image
  int channels = 0;       ///< of the decoded image where grey is kept: 1 or 3
  int bits = 8;           ///< stored bits a sample: 1, 2, 4, 8 or 16
  int orientation = 1;    ///< EXIF, 1 to 8
  std::string_view mode;  ///< `grey`, `grey+alpha`, `palette`, `rgb`, `rgba`, `ycc`, `cmyk`, `ycck`
};

struct DecodeOptions {
  /// A grey image gets one channel instead of three equal ones.
  bool keep_grey = false;
  /// Larger images are refused before anything is allocated for them.
  std::int64_t max_pixels = std::int64_t{1} << 27;
};

/// Decodes one image. Everything becomes 8 bits a channel, red, green and blue: alpha is dropped, a palette
/// is looked up, 16 bits are scaled (value / 257, rounded), and CMYK is (255 - C) (255 - K) / 255 and so on,
/// with Adobe's inverted storage honoured; colour profiles and gamma are not applied. The EXIF orientation
/// is.
///
/// A damaged image is an Error, also where a decoder could guess: a file cut short, an invalid code, a
/// missing end. Only what harms no pixel is passed over: stray bytes between segments, an unknown JFIF
/// version, a damaged colour profile; `warning()` tells the first such.
class Decoder {
 public:
  virtual ~Decoder() = default;

  const ImageInfo& info() const { return info_; }
  /// Decodes the pixels; may be called once. `eighths` (1, 2, 4 or 8) asks a JPEG decoder for a smaller
  /// image: each extent is the original's times eighths / 8, rounded up (that of the stored image, before it
  /// is turned upright). Every other format comes in full, as `image` shows.
  virtual void decode(Image& image, int eighths = 8) = 0;
  /// The first harmless defect, or empty.
  const std::string& warning() const { return warning_; }

 protected:
  ImageInfo info_;
  std::string warning_;
};

/// Reads the header of an image in memory, which must stay there while the decoder lives. The format is told
/// from the bytes; what is neither JPEG nor PNG, is damaged or too large throws Error("image", …) without a
/// path.
std::unique_ptr<Decoder> open_image(std::span<const std::byte> bytes, const DecodeOptions& options = {});

/// Reads and decodes a file; errors name its path.
Image read_image(const std::string& path, const DecodeOptions& options = {});

}  // namespace purine::data
