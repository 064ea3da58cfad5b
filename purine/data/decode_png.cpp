#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "purine/core/error.h"
#include "purine/data/decoders.h"
#include "purine/data/exif.h"

namespace purine::data::internal {
namespace {

// libpng leaves by a long jump, since C has no exceptions: nothing between guard()'s setjmp and the library's
// functions holds an object with a destructor.
class PngDecoder final : public Decoder {
 public:
  PngDecoder(std::span<const std::byte> bytes, const DecodeOptions& options) : rest_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, leave, take_warning);
    info_struct_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    try {
      if (info_struct_ == nullptr) throw Error("image", "libpng can't be set up: " + std::string(message_));
      guard([&] {
        png_set_read_fn(png_, this, read);
        // Where nothing says otherwise libpng takes a damaged checksum of pixels as an error, which is
        // wanted.
        png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
        png_read_info(png_, info_struct_);
      });
      check_pixels(png_get_image_width(png_, info_struct_), png_get_image_height(png_, info_struct_),
                   options);
      describe(options);
    } catch (...) {
      destroy();
      throw;
    }
  }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
  ~PngDecoder() override { destroy(); }

  void decode(Image& image, int /*eighths*/) override {
    PURINE_CHECK(!decoded_);
    decoded_ = true;
    const int height = static_cast<int>(png_get_image_height(png_, info_struct_));
    const int width = static_cast<int>(png_get_image_width(png_, info_struct_));
    image.resize(height, width, info_.channels);
    rows_.resize(static_cast<std::size_t>(height));
    for (int y = 0; y < height; ++y) rows_[static_cast<std::size_t>(y)] = image.row(y);
    const std::size_t row_bytes = image.row_bytes();
    guard([&] {
      const png_byte color = png_get_color_type(png_, info_struct_);
      if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
      if (color == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
      png_set_scale_16(png_);
      png_set_strip_alpha(png_);
      const bool grey = (color & PNG_COLOR_MASK_COLOR) == 0;
      if (grey && info_.channels == 3) png_set_gray_to_rgb(png_);
      png_set_interlace_handling(png_);
      png_read_update_info(png_, info_struct_);
      if (png_get_rowbytes(png_, info_struct_) != row_bytes) png_error(png_, "unexpected row size");
      png_read_image(png_, rows_.data());
      png_read_end(png_, nullptr);
    });
    turn_upright(image, info_.orientation);
  }

 private:
  template <typename Body>
  void guard(Body&& body) {
    if (setjmp(png_jmpbuf(png_)) != 0) throw Error("image", "damaged PNG: " + std::string(message_));
    body();
    if (warning_.empty()) warning_ = first_warning_;
  }

  void destroy() { png_destroy_read_struct(&png_, &info_struct_, nullptr); }

  [[noreturn]] static void leave(png_structp png, png_const_charp message) {
    auto& self = *static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::snprintf(self.message_, sizeof(self.message_), "%s", message);
    png_longjmp(png, 1);
  }

  static void take_warning(png_structp png, png_const_charp message) {
    auto& self = *static_cast<PngDecoder*>(png_get_error_ptr(png));
    if (self.first_warning_[0] == '\0') {
      std::snprintf(self.first_warning_, sizeof(self.first_warning_), "%s", message);
    }
  }

  static void read(png_structp png, png_bytep to, std::size_t count) {
    auto& self = *static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (count > self.rest_.size()) png_error(png, "the file ends too early");
    std::memcpy(to, self.rest_.data(), count);
    self.rest_ = self.rest_.subspan(count);
  }

  void describe(const DecodeOptions& options) {
    info_.format = ImageFormat::png;
    info_.bits = png_get_bit_depth(png_, info_struct_);
    info_.orientation = orientation();
    const int height = static_cast<int>(png_get_image_height(png_, info_struct_));
    const int width = static_cast<int>(png_get_image_width(png_, info_struct_));
    info_.height = info_.orientation >= 5 ? width : height;
    info_.width = info_.orientation >= 5 ? height : width;
    info_.channels = 3;
    switch (png_get_color_type(png_, info_struct_)) {
      case PNG_COLOR_TYPE_GRAY:
        info_.mode = "grey";
        break;
      case PNG_COLOR_TYPE_GRAY_ALPHA:
        info_.mode = "grey+alpha";
        break;
      case PNG_COLOR_TYPE_PALETTE:
        info_.mode = "palette";
        break;
      case PNG_COLOR_TYPE_RGB:
        info_.mode = "rgb";
        break;
      default:
        info_.mode = "rgba";
    }
    if (options.keep_grey && info_.mode.starts_with("grey")) info_.channels = 1;
  }

  // What an eXIf chunk ahead of the pixels says; one behind them comes too late to be known from the header.
  int orientation() {
    png_uint_32 size = 0;
    png_bytep exif = nullptr;
    if (png_get_eXIf_1(png_, info_struct_, &size, &exif) == 0) return 1;
    return exif_orientation(std::as_bytes(std::span(exif, size)));
  }

  std::span<const std::byte> rest_;
  png_structp png_ = nullptr;
  png_infop info_struct_ = nullptr;
  std::vector<png_bytep> rows_;
  bool decoded_ = false;
  char message_[256] = {};
  char first_warning_[256] = {};
};

}  // namespace

std::unique_ptr<Decoder> open_png(std::span<const std::byte> bytes, const DecodeOptions& options) {
  return std::make_unique<PngDecoder>(bytes, options);
}

}  // namespace purine::data::internal
