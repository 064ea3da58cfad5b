#include <cstdio>
// jpeglib.h needs size_t and FILE declared before it.
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstring>

#include "purine/core/error.h"
#include "purine/data/decoders.h"
#include "purine/data/exif.h"

namespace purine::data::internal {
namespace {

// A file that spends hours of decoding on a few bytes has thousands of scans; cameras and tools write
// about 10.
constexpr int max_scans = 500;

// libjpeg leaves by a long jump, since C has no exceptions: nothing between guard()'s setjmp and the
// library's functions holds an object with a destructor.
class JpegDecoder final : public Decoder {
 public:
  JpegDecoder(std::span<const std::byte> bytes, const DecodeOptions& options) {
    jpeg_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = leave;
    errors_.base.emit_message = take_message;
    jpeg_.client_data = this;
    try {
      guard([&] {
        jpeg_create_decompress(&jpeg_);
        jpeg_.client_data = this;
        jpeg_.progress = &progress_;
        progress_.progress_monitor = check_scans;
        jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
        jpeg_save_markers(&jpeg_, JPEG_APP0 + 1, 0xffff);
        jpeg_read_header(&jpeg_, TRUE);
      });
      check_pixels(jpeg_.image_width, jpeg_.image_height, options);
      describe(options);
    } catch (...) {
      jpeg_destroy_decompress(&jpeg_);
      throw;
    }
  }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() override { jpeg_destroy_decompress(&jpeg_); }

  void decode(Image& image, int eighths) override {
    PURINE_CHECK(eighths == 1 || eighths == 2 || eighths == 4 || eighths == 8);
    PURINE_CHECK(!decoded_);
    decoded_ = true;
    jpeg_.scale_num = static_cast<unsigned>(eighths);
    jpeg_.scale_denom = 8;
    guard([&] { jpeg_calc_output_dimensions(&jpeg_); });
    image.resize(static_cast<int>(jpeg_.output_height), static_cast<int>(jpeg_.output_width), info_.channels);
    const bool cmyk = jpeg_.out_color_space == JCS_CMYK;
    if (cmyk) cmyk_row_.resize(std::size_t{4} * jpeg_.output_width);
    guard([&] {
      jpeg_start_decompress(&jpeg_);
      while (jpeg_.output_scanline < jpeg_.output_height) {
        std::uint8_t* row = image.row(static_cast<int>(jpeg_.output_scanline));
        JSAMPROW target = cmyk ? cmyk_row_.data() : row;
        jpeg_read_scanlines(&jpeg_, &target, 1);
        if (cmyk) convert_cmyk(row);
      }
      jpeg_finish_decompress(&jpeg_);
    });
    turn_upright(image, info_.orientation);
    if (eighths < 8) place_corner(image, eighths);
  }

 private:
  struct Errors {
    jpeg_error_mgr base;
    std::jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
    char warning[JMSG_LENGTH_MAX];
  };

  template <typename Body>
  void guard(Body&& body) {
    if (setjmp(errors_.jump) != 0) throw Error("image", describe_failure());
    body();
    if (warning_.empty()) warning_ = errors_.warning;
  }

  // The last row and column of a smaller image may lie only partly within the picture: turned around, they
  // come first, and the picture begins within them.
  void place_corner(Image& image, int eighths) const {
    const auto excess = [&](JDIMENSION smaller, JDIMENSION whole) { return smaller - whole * eighths / 8.0; };
    const double rows =
        reverses_rows(info_.orientation) ? excess(jpeg_.output_height, jpeg_.image_height) : 0.0;
    const double columns =
        reverses_columns(info_.orientation) ? excess(jpeg_.output_width, jpeg_.image_width) : 0.0;
    image.top = info_.orientation >= 5 ? columns : rows;
    image.left = info_.orientation >= 5 ? rows : columns;
  }

  // libjpeg's texts with the format in front, unless they name it themselves.
  std::string describe_failure() const {
    const std::string message = errors_.message;
    return message.find("JPEG") == std::string::npos ? "damaged JPEG: " + message : message;
  }

  static JpegDecoder& of(j_common_ptr jpeg) { return *static_cast<JpegDecoder*>(jpeg->client_data); }

  [[noreturn]] static void leave(j_common_ptr jpeg) {
    Errors& errors = of(jpeg).errors_;
    errors.base.format_message(jpeg, errors.message);
    std::longjmp(errors.jump, 1);
  }

  static void take_message(j_common_ptr jpeg, int level) {
    if (level >= 0) return;
    Errors& errors = of(jpeg).errors_;
    switch (errors.base.msg_code) {
      case JWRN_ADOBE_XFORM:
      case JWRN_BOGUS_ICC:
      case JWRN_EXTRANEOUS_DATA:
      case JWRN_JFIF_MAJOR:
      case JWRN_NOT_SEQUENTIAL:
      case JWRN_TOO_MUCH_DATA:
        if (errors.warning[0] == '\0') errors.base.format_message(jpeg, errors.warning);
        return;
      default:
        leave(jpeg);
    }
  }

  static void check_scans(j_common_ptr jpeg) {
    if (jpeg->is_decompressor == 0) return;
    if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= max_scans) return;
    Errors& errors = of(jpeg).errors_;
    std::snprintf(errors.message, sizeof(errors.message), "JPEG with more than %d scans", max_scans);
    std::longjmp(errors.jump, 1);
  }

  void describe(const DecodeOptions& options) {
    info_.format = ImageFormat::jpeg;
    info_.bits = jpeg_.data_precision;
    info_.orientation = orientation();
    const bool transposed = info_.orientation >= 5;
    info_.height = static_cast<int>(transposed ? jpeg_.image_width : jpeg_.image_height);
    info_.width = static_cast<int>(transposed ? jpeg_.image_height : jpeg_.image_width);
    info_.channels = 3;
    jpeg_.out_color_space = JCS_RGB;
    switch (jpeg_.jpeg_color_space) {
      case JCS_GRAYSCALE:
        info_.mode = "grey";
        if (options.keep_grey) {
          info_.channels = 1;
          jpeg_.out_color_space = JCS_GRAYSCALE;
        }
        break;
      case JCS_RGB:
        info_.mode = "rgb";
        break;
      case JCS_YCbCr:
        info_.mode = "ycc";
        break;
      case JCS_CMYK:
      case JCS_YCCK:
        info_.mode = jpeg_.jpeg_color_space == JCS_CMYK ? "cmyk" : "ycck";
        jpeg_.out_color_space = JCS_CMYK;
        break;
      default:
        throw Error("image", "JPEG with " + std::to_string(jpeg_.num_components) +
                                 " components of an unknown colour space");
    }
  }

  int orientation() const {
    constexpr char start[] = "Exif\0";  // and the literal's own 0: six bytes
    for (const jpeg_marker_struct* marker = jpeg_.marker_list; marker != nullptr; marker = marker->next) {
      if (marker->marker != JPEG_APP0 + 1 || marker->data_length < sizeof(start)) continue;
      if (std::memcmp(marker->data, start, sizeof(start)) != 0) continue;
      return exif_orientation(
          std::as_bytes(std::span(marker->data, marker->data_length)).subspan(sizeof(start)));
    }
    return 1;
  }

  // Adobe's programs store the inks inverted, and mark their files.
  void convert_cmyk(std::uint8_t* row) const {
    const std::uint32_t inverted = jpeg_.saw_Adobe_marker != 0 ? 0 : 255;
    for (std::size_t x = 0; x < jpeg_.output_width; ++x) {
      const std::uint8_t* inks = cmyk_row_.data() + 4 * x;
      const std::uint32_t light = inks[3] ^ inverted;
      for (std::size_t c = 0; c < 3; ++c) {
        row[3 * x + c] = static_cast<std::uint8_t>(((inks[c] ^ inverted) * light + 127) / 255);
      }
    }
  }

  jpeg_decompress_struct jpeg_{};
  jpeg_progress_mgr progress_{};
  Errors errors_{};
  std::vector<std::uint8_t> cmyk_row_;
  bool decoded_ = false;
};

}  // namespace

std::unique_ptr<Decoder> open_jpeg(std::span<const std::byte> bytes, const DecodeOptions& options) {
  return std::make_unique<JpegDecoder>(bytes, options);
}

}  // namespace purine::data::internal
