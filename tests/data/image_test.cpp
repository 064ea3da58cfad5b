#include "purine/data/image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "purine/core/random.h"
#include "purine/data/file.h"
#include "tests/data/image_files.h"
#include "tests/support/error_text.h"
#include "tests/support/plain_file.h"
#include "tests/support/temporary_folder.h"

namespace purine::data {
namespace {

using test::as_bytes;
using test::Bytes;
using test::decoded;
using test::error_text;
using test::jpeg_file;
using test::JpegOptions;
using test::make_image;
using test::png_file;
using test::PngOptions;

const std::string golden_folder = "tests/data/golden/";

int largest_difference(const Image& left, const Image& right) {
  EXPECT_EQ(left.height, right.height);
  EXPECT_EQ(left.width, right.width);
  EXPECT_EQ(left.channels, right.channels);
  if (left.pixels.size() != right.pixels.size()) return 256;
  int difference = 0;
  for (std::size_t i = 0; i < left.pixels.size(); ++i) {
    difference = std::max(difference, std::abs(left.pixels[i] - right.pixels[i]));
  }
  return difference;
}

Image golden_image(const std::string& name) {
  std::vector<std::byte> bytes;
  read_file(golden_folder + name + ".rgb", bytes);
  std::uint32_t extents[2];
  std::memcpy(extents, bytes.data(), sizeof(extents));
  Image image;
  image.resize(static_cast<int>(extents[0]), static_cast<int>(extents[1]), 3);
  std::memcpy(image.pixels.data(), bytes.data() + sizeof(extents), image.pixels.size());
  return image;
}

void expect_solid(const Image& image, const std::array<int, 3>& color) {
  ASSERT_EQ(image.channels, 3);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) ASSERT_EQ(image.pixels[i], color[i % 3]) << i;
}

TEST(ImageTest, DecodesJpegAsPillowDoes) {
  for (const char* name : {"subsampled", "progressive", "grey", "cmyk"}) {
    // Decoders of JPEG may round differently, by one step.
    EXPECT_LE(largest_difference(read_image(golden_folder + name + ".jpg"), golden_image(name)), 1) << name;
  }
}

TEST(ImageTest, TurnsOrientedImagesUprightAsPillowDoes) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string name = "orientation_" + std::to_string(orientation);
    EXPECT_LE(largest_difference(read_image(golden_folder + name + ".jpg"), golden_image(name)), 1) << name;
  }
}

TEST(ImageTest, DecodesPngAsPillowDoes) {
  for (const char* name : {"palette", "bits_1", "grey_alpha", "rgba"}) {
    EXPECT_EQ(largest_difference(read_image(golden_folder + name + ".png"), golden_image(name)), 0) << name;
  }
}

TEST(ImageTest, TurnsUpright) {
  // Stored 1 2 3 / 4 5 6; the orientation says where its first row and column belong.
  const std::vector<std::vector<std::uint8_t>> expected = {
      {1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},
      {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    Image image = make_image(2, 3, 1, [](int y, int x, int) { return 3 * y + x + 1; });
    turn_upright(image, orientation);
    EXPECT_EQ(image.pixels, expected[static_cast<std::size_t>(orientation - 1)]) << orientation;
    EXPECT_EQ(image.height, orientation >= 5 ? 3 : 2);
  }
}

TEST(ImageTest, OrientationOfPngIsHonoured) {
  PngOptions options;
  options.colors = PngOptions::Colors::grey;
  const Bytes segment = test::exif_segment(6);
  options.exif.assign(segment.begin() + 6, segment.end());
  const Image image = decoded(png_file(3, {{1, 2, 3}, {4, 5, 6}}, options), {.keep_grey = true});
  EXPECT_EQ(image.pixels, (Bytes{4, 1, 5, 2, 6, 3}));
  EXPECT_EQ(image.height, 3);
}

TEST(ImageTest, SolidGreyIsThreeEqualChannelsInEveryJpegMode) {
  for (const int grey : {0, 1, 77, 128, 254, 255}) {
    const auto solid = [&](int channels, auto value) {
      return make_image(16, 24, channels, [&](int, int, int c) { return value(c); });
    };
    const auto same = [&](int) { return grey; };
    JpegOptions options;
    options.quality = 100;
    for (const auto colors : {JpegOptions::Colors::rgb, JpegOptions::Colors::ycc}) {
      options.colors = colors;
      expect_solid(decoded(jpeg_file(solid(3, same), options)), {grey, grey, grey});
    }
    options.colors = JpegOptions::Colors::grey;
    expect_solid(decoded(jpeg_file(solid(1, same), options)), {grey, grey, grey});
    // Black ink alone, and the three colours alone; stored inverted where Adobe's marker is.
    const auto black_ink = [&](bool inverted) {
      return [=](int c) { return (c == 3 ? 255 - grey : 0) ^ (inverted ? 255 : 0); };
    };
    const auto three_inks = [&](bool inverted) {
      return [=](int c) { return (c == 3 ? 0 : 255 - grey) ^ (inverted ? 255 : 0); };
    };
    for (const auto colors : {JpegOptions::Colors::cmyk, JpegOptions::Colors::ycck}) {
      options.colors = colors;
      options.adobe = true;
      expect_solid(decoded(jpeg_file(solid(4, black_ink(true)), options)), {grey, grey, grey});
      expect_solid(decoded(jpeg_file(solid(4, three_inks(true)), options)), {grey, grey, grey});
    }
    options.colors = JpegOptions::Colors::cmyk;
    options.adobe = false;
    expect_solid(decoded(jpeg_file(solid(4, black_ink(false)), options)), {grey, grey, grey});
    expect_solid(decoded(jpeg_file(solid(4, three_inks(false)), options)), {grey, grey, grey});
  }
}

TEST(ImageTest, CmykIsLightTimesLight) {
  // Inks 51, 102, 204 and 51 leave (255 - ink) (255 - 51) / 255 of light.
  const Image inks = make_image(8, 8, 4, [](int, int, int c) {
    constexpr int values[] = {51, 102, 204, 51};
    return 255 - values[c];
  });
  JpegOptions options;
  options.colors = JpegOptions::Colors::cmyk;
  options.quality = 100;
  expect_solid(decoded(jpeg_file(inks, options)), {163, 122, 41});
}

TEST(ImageTest, PngOfEveryKindBecomesThreeChannels) {
  const auto check = [](PngOptions::Colors colors, int bits, const Bytes& row, const Bytes& expected,
                        std::string_view mode) {
    PngOptions options;
    options.colors = colors;
    options.bits = bits;
    if (colors == PngOptions::Colors::palette) {
      options.palette = {10, 20, 30, 40, 50, 60, 70, 80, 90};
      options.palette_alpha = {0, 128};
    }
    const int width = static_cast<int>(expected.size() / 3);
    for (const bool interlaced : {false, true}) {
      options.interlaced = interlaced;
      const Bytes file = png_file(width, {row, row, row}, options);
      const auto decoder = open_image(as_bytes(file));
      EXPECT_EQ(decoder->info().mode, mode);
      EXPECT_EQ(decoder->info().bits, bits);
      Image image;
      decoder->decode(image);
      ASSERT_EQ(image.height, 3);
      for (int y = 0; y < 3; ++y) {
        EXPECT_EQ(Bytes(image.row(y), image.row(y) + image.row_bytes()), expected) << mode << bits;
      }
    }
  };
  using Colors = PngOptions::Colors;
  check(Colors::grey, 1, {0b10100000}, {255, 255, 255, 0, 0, 0, 255, 255, 255}, "grey");
  check(Colors::grey, 2, {0b00011011}, {0, 0, 0, 85, 85, 85, 170, 170, 170, 255, 255, 255}, "grey");
  check(Colors::grey, 4, {0x5f}, {85, 85, 85, 255, 255, 255}, "grey");
  check(Colors::grey, 8, {77}, {77, 77, 77}, "grey");
  // 16 bits are value / 257, rounded: 0x4d4d is 77, 0x4dcd nearly 77.5, 0x4dce just above it.
  check(Colors::grey, 16, {0x4d, 0x4d, 0x4d, 0xcd, 0x4d, 0xce}, {77, 77, 77, 77, 77, 77, 78, 78, 78}, "grey");
  check(Colors::grey_alpha, 8, {77, 0, 200, 128}, {77, 77, 77, 200, 200, 200}, "grey+alpha");
  check(Colors::grey_alpha, 16, {77, 77, 0, 0}, {77, 77, 77}, "grey+alpha");
  check(Colors::palette, 8, {2, 0, 1}, {70, 80, 90, 10, 20, 30, 40, 50, 60}, "palette");
  check(Colors::palette, 2, {0b10000100}, {70, 80, 90, 10, 20, 30, 40, 50, 60}, "palette");
  check(Colors::rgb, 8, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}, "rgb");
  check(Colors::rgb, 16, {1, 1, 2, 2, 3, 3}, {1, 2, 3}, "rgb");
  check(Colors::rgba, 8, {1, 2, 3, 0, 4, 5, 6, 255}, {1, 2, 3, 4, 5, 6}, "rgba");
  check(Colors::rgba, 16, {1, 1, 2, 2, 3, 3, 0, 0}, {1, 2, 3}, "rgba");
}

TEST(ImageTest, GreyIsKeptWhereAskedFor) {
  const Image grey = test::waves(11, 13, 1);
  const Image kept = decoded(png_file(grey), {.keep_grey = true});
  EXPECT_EQ(largest_difference(kept, grey), 0);
  JpegOptions options;
  options.colors = JpegOptions::Colors::grey;
  const Image three = decoded(jpeg_file(grey, options));
  Image one = decoded(jpeg_file(grey, options), {.keep_grey = true});
  EXPECT_EQ(one.channels, 1);
  EXPECT_LE(largest_difference(one, grey), 3);
  convert_channels(one, 3);
  EXPECT_EQ(largest_difference(one, three), 0);
}

TEST(ImageTest, ConvertsChannels) {
  Image image = make_image(1, 4, 3, [](int, int x, int c) { return x == 3 ? 200 : x == c ? 255 : 0; });
  convert_channels(image, 1);
  // 0.299, 0.587 and 0.114 of 255.
  EXPECT_EQ(image.pixels, (Bytes{76, 150, 29, 200}));
  convert_channels(image, 3);
  EXPECT_EQ(image.pixels, (Bytes{76, 76, 76, 150, 150, 150, 29, 29, 29, 200, 200, 200}));
}

TEST(ImageTest, ScaledDecodingIsNearTheMeanOfTheBlocks) {
  const Image whole = test::waves(67, 90, 3);
  JpegOptions options;
  options.quality = 98;
  options.exif = test::exif_segment(1);
  const Bytes file = jpeg_file(whole, options);
  for (const int eighths : {1, 2, 4}) {
    Image image;
    open_image(as_bytes(file))->decode(image, eighths);
    const int step = 8 / eighths;
    ASSERT_EQ(image.height, (67 + step - 1) / step);
    ASSERT_EQ(image.width, (90 + step - 1) / step);
    for (int y = 0; y < 67 / step; ++y) {
      for (int x = 0; x < 90 / step; ++x) {
        int sum = 0;
        for (int i = 0; i < step * step; ++i)
          sum += whole.row(y * step + i / step)[3 * (x * step + i % step)];
        EXPECT_NEAR(image.row(y)[3 * x], sum / (step * step), 6);
      }
    }
  }
}

TEST(ImageTest, HarmlessDefectsAreToldButNoErrors) {
  Bytes file = jpeg_file(test::waves(16, 16, 3));
  const Bytes stray(7, 0);
  file.insert(file.end() - 2, stray.begin(), stray.end());
  const auto decoder = open_image(as_bytes(file));
  Image image;
  decoder->decode(image);
  EXPECT_NE(decoder->warning().find("extraneous bytes before marker 0xd9"), std::string::npos);
  EXPECT_LE(largest_difference(image, test::waves(16, 16, 3)), 12);
  file.resize(file.size() + 100);
  EXPECT_EQ(decoded(file).height, 16) << "bytes behind the end are nobody's business";
}

TEST(ImageTest, WhatIsNoImageIsAnErrorThatNamesItsPath) {
  const test::TemporaryFolder folder;
  const auto text_of = [&](const Bytes& bytes) {
    test::write_plain_file(folder / "a.jpg", test::as_text(bytes));
    std::string text = error_text([&] { read_image((folder / "a.jpg").string()); });
    const std::size_t at = text.find(folder.path().string());
    return at == std::string::npos ? text : text.replace(at, folder.path().string().size(), "DIR");
  };
  EXPECT_EQ(text_of({}), "[image] DIR/a.jpg: the file is empty");
  EXPECT_EQ(
      text_of({'G', 'I', 'F', '8', '9', 'a'}),
      "[image] DIR/a.jpg: is neither a JPEG nor a PNG image; hint: other formats have to be converted first");
  Bytes jpeg = jpeg_file(test::waves(40, 40, 3));
  jpeg.resize(jpeg.size() / 2);
  EXPECT_EQ(text_of(jpeg), "[image] DIR/a.jpg: Premature end of JPEG file");
  Bytes png = png_file(test::waves(40, 40, 3));
  png.resize(png.size() - 20);
  EXPECT_EQ(text_of(png), "[image] DIR/a.jpg: damaged PNG: the file ends too early");
  png = png_file(test::waves(40, 40, 3));
  png[png.size() - 16] ^= 1;  // the pixels' checksum
  EXPECT_EQ(text_of(png), "[image] DIR/a.jpg: damaged PNG: IDAT: CRC error");
  EXPECT_EQ(error_text([&] { read_image((folder / "none.png").string()); }),
            "[file] " + (folder / "none.png").string() + ": can't be read: No such file or directory");
  EXPECT_EQ(error_text([&] { read_image(folder.path().string()); }),
            "[file] " + folder.path().string() + ": is not a regular file");
}

TEST(ImageTest, HugeImagesAreRefusedFromTheirHeaders) {
  const Bytes png = png_file(test::waves(60, 50, 1));
  EXPECT_EQ(error_text([&] { open_image(as_bytes(png), {.max_pixels = 2999}); }),
            "[image] has 50 x 60 pixels, the limit is 2999 pixels");
  EXPECT_EQ(open_image(as_bytes(png), {.max_pixels = 3000})->info().height, 60);
  // A JPEG of a few hundred bytes whose header claims 65,500 x 65,500 pixels.
  Bytes jpeg = jpeg_file(test::waves(8, 8, 3));
  for (std::size_t i = 0; i + 9 < jpeg.size(); ++i) {
    if (jpeg[i] != 0xff || jpeg[i + 1] != 0xc0) continue;
    jpeg[i + 5] = jpeg[i + 7] = 0xff;
    jpeg[i + 6] = jpeg[i + 8] = 0xdc;
    break;
  }
  EXPECT_EQ(error_text([&] { open_image(as_bytes(jpeg)); }),
            "[image] has 65500 x 65500 pixels, the limit is 134217728 pixels");
}

TEST(ImageTest, EndlessScansAreRefused) {
  JpegOptions options;
  options.separate_scans = true;
  const Bytes file = jpeg_file(test::waves(16, 16, 3), options);
  // A scan begins with ff da; the last ends where the file's end marker is.
  std::size_t scan = 0;
  for (std::size_t i = 0; i + 1 < file.size(); ++i) {
    if (file[i] == 0xff && file[i + 1] == 0xda) scan = i;
  }
  const Bytes last(file.begin() + static_cast<std::ptrdiff_t>(scan), file.end() - 2);
  const auto with_more = [&](int count) {
    Bytes endless(file.begin(), file.end() - 2);
    for (int i = 0; i < count; ++i) endless.insert(endless.end(), last.begin(), last.end());
    endless.insert(endless.end(), file.end() - 2, file.end());
    return endless;
  };
  EXPECT_EQ(largest_difference(decoded(with_more(10)), decoded(file)), 0);
  EXPECT_EQ(error_text([&] { decoded(with_more(600)); }), "[image] JPEG with more than 500 scans");
}

// Every file cut short is an Error; with bytes changed it is an Error or an image.

std::vector<Bytes> files_to_damage() {
  std::vector<Bytes> files;
  JpegOptions options;
  options.exif = test::exif_segment(5);
  files.push_back(jpeg_file(test::waves(17, 21, 3), options));
  options.progressive = true;
  files.push_back(jpeg_file(test::waves(17, 21, 3), options));
  options.progressive = false;
  options.restart_interval = 1;
  options.colors = JpegOptions::Colors::ycck;
  files.push_back(jpeg_file(test::waves(17, 21, 4), options));
  files.push_back(png_file(test::waves(9, 7, 3)));
  PngOptions palette;
  palette.colors = PngOptions::Colors::palette;
  palette.bits = 4;
  palette.interlaced = true;
  palette.palette = Bytes(48, 99);
  files.push_back(png_file(6, std::vector<Bytes>(9, Bytes{0x12, 0x34, 0x5f}), palette));
  return files;
}

TEST(ImageTest, FilesCutShortAreErrors) {
  for (const Bytes& file : files_to_damage()) {
    for (std::size_t size = 0; size < file.size(); ++size) {
      const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_NE(error_text([&] { decoded(cut); }).find("[image] "), std::string::npos) << size;
    }
  }
}

TEST(ImageTest, DamagedFilesAreErrorsOrImages) {
  int errors = 0;
  int images = 0;
  const std::vector<Bytes> files = files_to_damage();
  for (std::uint64_t round = 0; round < 4000; ++round) {
    const Random random(5, 6, round);
    Bytes file = files[round % files.size()];
    const std::uint64_t changes = 1 + random.below(0, 3);
    for (std::uint64_t i = 1; i <= changes; ++i) {
      file[random.below(2 * i, file.size())] = static_cast<std::uint8_t>(random.bits(2 * i + 1));
    }
    try {
      // A header may claim a large image; a small limit keeps the test quick.
      const Image image = decoded(file, {.max_pixels = 1 << 16});
      ++images;
      ASSERT_EQ(image.pixels.size(), image.row_bytes() * static_cast<std::size_t>(image.height));
    } catch (const Error& error) {
      ++errors;
      ASSERT_EQ(error.component(), "image");
      ASSERT_FALSE(error.message().empty());
    }
  }
  EXPECT_GT(errors, 1000);
  EXPECT_GT(images, 100);
}

}  // namespace
}  // namespace purine::data
