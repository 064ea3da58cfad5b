#include "tests/data/image_files.h"

#include <cstdio>
// jpeglib.h needs size_t and FILE declared before it.
#include <jpeglib.h>
#include <png.h>

#include <cmath>
#include <cstdlib>

#include "purine/core/error.h"

namespace purine::test {
namespace {

J_COLOR_SPACE color_space_of(JpegOptions::Colors colors) {
  switch (colors) {
    case JpegOptions::Colors::grey:
      return JCS_GRAYSCALE;
    case JpegOptions::Colors::rgb:
      return JCS_RGB;
    case JpegOptions::Colors::ycc:
      return JCS_YCbCr;
    case JpegOptions::Colors::cmyk:
      return JCS_CMYK;
    case JpegOptions::Colors::ycck:
      break;
  }
  return JCS_YCCK;
}

int color_type_of(PngOptions::Colors colors) {
  switch (colors) {
    case PngOptions::Colors::grey:
      return PNG_COLOR_TYPE_GRAY;
    case PngOptions::Colors::grey_alpha:
      return PNG_COLOR_TYPE_GRAY_ALPHA;
    case PngOptions::Colors::palette:
      return PNG_COLOR_TYPE_PALETTE;
    case PngOptions::Colors::rgb:
      return PNG_COLOR_TYPE_RGB;
    case PngOptions::Colors::rgba:
      break;
  }
  return PNG_COLOR_TYPE_RGB_ALPHA;
}

void append(png_structp png, png_bytep bytes, std::size_t count) {
  auto& file = *static_cast<Bytes*>(png_get_io_ptr(png));
  file.insert(file.end(), bytes, bytes + count);
}

}  // namespace

Bytes jpeg_file(const data::Image& image, const JpegOptions& options) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.input_components = image.channels;
  jpeg.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, color_space_of(options.colors));
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  jpeg.restart_interval = static_cast<unsigned>(options.restart_interval);
  if (!options.adobe) jpeg.write_Adobe_marker = FALSE;
  jpeg_scan_info scans[3] = {};
  if (options.separate_scans) {
    for (int i = 0; i < 3; ++i) scans[i] = {1, {i}, 0, 63, 0, 0};
    jpeg.scan_info = scans;
    jpeg.num_scans = 3;
  }
  if (options.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  if (!options.exif.empty()) {
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, options.exif.data(), static_cast<unsigned>(options.exif.size()));
  }
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(image.row(static_cast<int>(jpeg.next_scanline)));
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  Bytes bytes(memory, memory + size);
  std::free(memory);
  return bytes;
}

Bytes png_file(int width, const std::vector<Bytes>& rows, const PngOptions& options) {
  Bytes file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &file, append, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(rows.size()),
               options.bits, color_type_of(options.colors),
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (!options.palette.empty()) {
    png_set_PLTE(png, info, reinterpret_cast<png_const_colorp>(options.palette.data()),
                 static_cast<int>(options.palette.size() / 3));
  }
  if (!options.palette_alpha.empty()) {
    png_set_tRNS(png, info, options.palette_alpha.data(), static_cast<int>(options.palette_alpha.size()),
                 nullptr);
  }
  if (!options.exif.empty()) {
    png_set_eXIf_1(png, info, static_cast<png_uint_32>(options.exif.size()),
                   const_cast<png_bytep>(options.exif.data()));
  }
  std::vector<png_bytep> pointers;
  for (const Bytes& row : rows) pointers.push_back(const_cast<png_bytep>(row.data()));
  png_set_rows(png, info, pointers.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

Bytes png_file(const data::Image& image) {
  std::vector<Bytes> rows;
  for (int y = 0; y < image.height; ++y) rows.emplace_back(image.row(y), image.row(y) + image.row_bytes());
  PngOptions options;
  options.colors = image.channels == 1 ? PngOptions::Colors::grey : PngOptions::Colors::rgb;
  return png_file(image.width, rows, options);
}

Bytes exif_segment(int orientation, bool big_endian) {
  Bytes bytes = {'E', 'x', 'i', 'f', 0, 0};
  const auto append_number = [&](std::uint32_t value, int size) {
    for (int i = 0; i < size; ++i) {
      const int shift = 8 * (big_endian ? size - 1 - i : i);
      bytes.push_back(static_cast<std::uint8_t>(value >> shift));
    }
  };
  const auto append_entry = [&](std::uint32_t tag, std::uint32_t type, std::uint32_t value, int value_size) {
    append_number(tag, 2);
    append_number(type, 2);
    append_number(1, 4);
    append_number(value, value_size);
    append_number(0, 4 - value_size);
  };
  bytes.insert(bytes.end(), 2, big_endian ? 'M' : 'I');
  append_number(42, 2);
  append_number(8, 4);
  append_number(3, 2);
  append_entry(0x0100, 4, 640, 4);  // the width
  append_entry(0x0112, 3, static_cast<std::uint32_t>(orientation), 2);
  append_entry(0x0128, 3, 2, 2);  // inches
  append_number(0, 4);
  return bytes;
}

data::Image make_image(int height, int width, int channels, const std::function<int(int, int, int)>& value) {
  data::Image image;
  image.resize(height, width, channels);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        image.row(y)[x * channels + c] = static_cast<std::uint8_t>(value(y, x, c));
      }
    }
  }
  return image;
}

data::Image decoded(const Bytes& bytes, const data::DecodeOptions& options) {
  data::Image image;
  data::open_image(as_bytes(bytes), options)->decode(image);
  return image;
}

data::Image waves(int height, int width, int channels) {
  return make_image(height, width, channels, [](int y, int x, int c) {
    return static_cast<int>(127.5 + 100 * std::sin(0.11 * x + c) * std::cos(0.07 * y - 0.5 * c));
  });
}

std::span<const std::byte> as_bytes(const Bytes& bytes) {
  return std::as_bytes(std::span(bytes));
}

std::string_view as_text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace purine::test
