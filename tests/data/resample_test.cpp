#include "purine/data/resample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "purine/core/json_helpers.h"
#include "purine/io/file.h"
#include "tests/data/image_files.h"

namespace purine::data {
namespace {

// What tests/data/golden/make_golden.py calls picture().
Image picture(int height, int width, int channels) {
  return test::make_image(height, width, channels, [](int y, int x, int c) {
    return (y * y * 7 + x * x * 3 + x * y * 5 + c * 85) % 256;
  });
}

std::vector<float> resampled(const Image& image, const ResampleAxis& rows, const ResampleAxis& columns,
                             bool flipped = false, int channels = 0) {
  Normalisation normalisation;
  normalisation.channels = channels == 0 ? image.channels : channels;
  normalisation.scale = {1, 1, 1};
  const std::ptrdiff_t plane = std::ptrdiff_t{rows.count} * columns.count;
  std::vector<float> output(static_cast<std::size_t>(plane * normalisation.channels), -1000.0F);
  ResampleWorkspace workspace;
  resample(image, rows, columns, flipped, normalisation, output.data(), {plane, columns.count, 1}, workspace);
  return output;
}

ResampleAxis whole(int extent) {
  return {0, static_cast<double>(extent), extent, 0, extent};
}

TEST(ResampleTest, AgreesWithPyTorch) {
  const nlohmann::json golden = parse_json(io::read_file("tests/data/golden/resample.json"));
  ASSERT_EQ(golden["interpolated"].size(), 6U);
  for (const nlohmann::json& item : golden["interpolated"]) {
    const std::vector<int> image = item["image"];
    const std::vector<int> part = item["part"];
    const std::vector<int> size = item["size"];
    const std::vector<int> window = item["window"];
    const std::vector<float> expected = item["values"];
    const std::vector<float> values = resampled(
        picture(image[0], image[1], image[2]),
        {static_cast<double>(part[0]), static_cast<double>(part[2]), size[0], window[0], window[2]},
        {static_cast<double>(part[1]), static_cast<double>(part[3]), size[1], window[1], window[3]});
    ASSERT_EQ(values.size(), expected.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], expected[i], 2e-4) << item["image"] << i;
    }
  }
}

TEST(ResampleTest, TheSameSizeIsTheSameImage) {
  const Image image = picture(6, 9, 3);
  const std::vector<float> values = resampled(image, whole(6), whole(9));
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 6; ++y) {
      for (int x = 0; x < 9; ++x) {
        EXPECT_EQ(values[static_cast<std::size_t>((c * 6 + y) * 9 + x)], image.row(y)[3 * x + c]);
      }
    }
  }
}

TEST(ResampleTest, FlippedIsMirrored) {
  const Image image = picture(14, 11, 3);
  const ResampleAxis rows = {0, 14, 9, 1, 7};
  const ResampleAxis columns = {0, 11, 8, -2, 12};
  const std::vector<float> plain = resampled(image, rows, columns);
  const std::vector<float> flipped = resampled(image, rows, columns, true);
  for (std::size_t line = 0; line < 3 * 7; ++line) {
    for (std::size_t x = 0; x < 12; ++x) EXPECT_EQ(flipped[line * 12 + x], plain[line * 12 + 11 - x]);
  }
}

TEST(ResampleTest, OutsideIsBlack) {
  // 2 x 2 in the middle of 4 x 5.
  const Image image = test::make_image(2, 2, 1, [](int y, int x, int) { return 10 * y + x + 1; });
  EXPECT_EQ(resampled(image, {0, 2, 2, -1, 4}, {0, 2, 2, -2, 5}),
            (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 11, 12, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(resampled(image, {0, 2, 2, 5, 1}, {0, 2, 2, 0, 2}), (std::vector<float>{0, 0}));
}

TEST(ResampleTest, GreyGivesEveryChannelTheSame) {
  const Image image = picture(7, 8, 1);
  const ResampleAxis rows = {0, 7, 5, 0, 5};
  const ResampleAxis columns = {0, 8, 6, 0, 6};
  const std::vector<float> one = resampled(image, rows, columns);
  const std::vector<float> three = resampled(image, rows, columns, false, 3);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_TRUE(std::equal(one.begin(), one.end(), three.begin() + static_cast<std::ptrdiff_t>(c * 30)));
  }
}

TEST(ResampleTest, ASolidImageStaysSolid) {
  const Image image = test::make_image(37, 41, 3, [](int, int, int c) { return 60 + 70 * c; });
  for (const int size : {1, 2, 13, 36, 37, 90}) {
    const std::vector<float> values = resampled(image, {0.5, 36.25, size, 0, size}, {0, 41, size, 0, size});
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], 60 + 70 * static_cast<int>(i / (values.size() / 3)), 1e-4);
    }
  }
}

TEST(ResampleTest, WritesChannelsLast) {
  const Image image = picture(5, 4, 3);
  Normalisation normalisation;
  normalisation.channels = 3;
  normalisation.scale = {0.5F, 2.0F, 1.0F};
  normalisation.shift = {1.0F, -1.0F, 0.0F};
  std::vector<float> output(60);
  ResampleWorkspace workspace;
  resample(image, whole(5), whole(4), false, normalisation, output.data(), {1, 12, 3}, workspace);
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t c = i % 3;
    EXPECT_EQ(output[i],
              static_cast<float>(image.pixels[i]) * normalisation.scale[c] + normalisation.shift[c]);
  }
}

}  // namespace
}  // namespace purine::data
