#include "purine/data/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "purine/core/json_helpers.h"
#include "purine/io/file.h"
#include "tests/data/image_files.h"
#include "tests/support/error_text.h"
#include "tests/support/plain_file.h"
#include "tests/support/temporary_folder.h"

namespace purine::data {
namespace {

using test::error_text;

std::vector<float> augmented(const Augmenter& augmenter, Image image, const Augmenter::Plan& plan) {
  const ImageSize size = augmenter.output();
  std::vector<float> output(static_cast<std::size_t>(size.channels * size.height * size.width));
  Augmenter::Workspace workspace;
  augmenter.apply(image, plan, output.data(), augmenter.planar(), workspace);
  return output;
}

std::vector<float> augmented(const Augmenter& augmenter, const Image& image, std::int64_t sample = 0) {
  return augmented(augmenter, image, augmenter.plan(image.height, image.width, 1, 0, sample));
}

// Values tell where they come from.
Image coordinates(int height, int width) {
  return test::make_image(height, width, 1, [](int y, int x, int) { return 16 * y + x; });
}

TEST(AugmentTest, ResizedAndCroppedAsTorchvisionDoes) {
  const nlohmann::json golden = parse_json(io::read_file("tests/data/golden/resample.json"));
  ASSERT_EQ(golden["transformed"].size(), 7U);
  for (const nlohmann::json& item : golden["transformed"]) {
    const std::vector<int> extents = item["image"];
    const std::int64_t resize = item["resize"];
    const std::int64_t crop = item["crop"];
    const std::vector<float> expected = item["values"];
    const Image image = test::make_image(extents[0], extents[1], extents[2], [](int y, int x, int c) {
      return (y * y * 7 + x * x * 3 + x * y * 5 + c * 85) % 256;
    });
    const Augmenter augmenter(
        {.channels = extents[2], .resize = resize, .crop = Crop::center, .crop_size = crop}, std::nullopt);
    const std::vector<float> values = augmented(augmenter, image);
    ASSERT_EQ(values.size(), expected.size());
    // Pillow rounds to whole steps twice, once in each direction.
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], expected[i], 1.01 / 255) << item["image"];
  }
}

TEST(AugmentTest, NormalisesPerChannel) {
  const Image image = test::make_image(2, 2, 3, [](int, int, int c) { return 51 * (c + 1); });
  const Augmenter each({.mean = {0.1, 0.2, 0.3}, .deviation = {0.5, 0.25, 2}}, ImageSize{3, 2, 2});
  const std::vector<float> values = augmented(each, image);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(values[i], (0.2 - 0.1) / 0.5, 1e-6);
    EXPECT_NEAR(values[4 + i], (0.4 - 0.2) / 0.25, 1e-6);
    EXPECT_NEAR(values[8 + i], (0.6 - 0.3) / 2, 1e-6);
  }
  const Augmenter plain({}, ImageSize{3, 2, 2});
  EXPECT_NEAR(augmented(plain, image)[11], 0.6, 1e-6);
}

TEST(AugmentTest, ChannelsAreMadeAsAskedFor) {
  const Image grey = test::make_image(2, 2, 1, [](int, int, int) { return 102; });
  const Image color = test::make_image(2, 2, 3, [](int, int, int c) { return c == 0 ? 255 : 0; });
  const Augmenter three({.channels = 3}, ImageSize{1, 2, 2});
  EXPECT_EQ(three.output().channels, 3);
  for (const float value : augmented(three, grey)) EXPECT_NEAR(value, 0.4, 1e-6);
  const Augmenter one({.channels = 1}, ImageSize{3, 2, 2});
  EXPECT_EQ(one.output().channels, 1);
  for (const float value : augmented(one, color)) EXPECT_NEAR(value, 76 / 255.0, 1e-6);
  EXPECT_EQ(Augmenter({.crop = Crop::center, .crop_size = 2}, std::nullopt).output().channels, 3);
}

TEST(AugmentTest, ASmallImageIsCroppedWithBlackAroundIt) {
  const Augmenter augmenter({.channels = 1, .crop = Crop::center, .crop_size = {4, 3}}, std::nullopt);
  const std::vector<float> values = augmented(augmenter, coordinates(2, 5));
  const std::vector<int> expected = {0, 0, 0, 1, 2, 3, 17, 18, 19, 0, 0, 0};
  for (std::size_t i = 0; i < 12; ++i) EXPECT_FLOAT_EQ(values[i], static_cast<float>(expected[i]) / 255.0F);
}

TEST(AugmentTest, RandomCropsTakeEveryPlaceEquallyOften) {
  // 4 x 6 with a border of 1, cropped to 4 x 6: 3 x 3 places.
  const Augmenter augmenter({.crop = Crop::random, .padding = 1}, ImageSize{1, 4, 6});
  EXPECT_EQ(augmenter.output().height, 4);
  std::map<std::pair<int, int>, int> counts;
  for (std::int64_t sample = 0; sample < 9000; ++sample) {
    const Augmenter::Plan plan = augmenter.plan(4, 6, 5, 2, sample);
    ++counts[{plan.rows.first, plan.columns.first}];
    EXPECT_FALSE(plan.flipped);
  }
  ASSERT_EQ(counts.size(), 9U);
  double statistic = 0;
  for (const auto& [place, count] : counts) {
    EXPECT_LE(std::abs(place.first), 1);
    EXPECT_LE(std::abs(place.second), 1);
    statistic += (count - 1000.0) * (count - 1000.0) / 1000.0;
  }
  EXPECT_LT(statistic, 26.1) << "chi-squared with 8 degrees of freedom, 99.9%";
}

TEST(AugmentTest, FlipsAsOftenAsAskedFor) {
  for (const double probability : {0.0, 0.25, 0.5, 1.0}) {
    const Augmenter augmenter({.flip = probability}, ImageSize{1, 4, 4});
    int flipped = 0;
    for (std::int64_t sample = 0; sample < 10000; ++sample) {
      if (augmenter.plan(4, 4, 9, 1, sample).flipped) ++flipped;
    }
    // Four standard deviations.
    EXPECT_NEAR(flipped, 10000 * probability, 4 * std::sqrt(10000 * probability * (1 - probability)));
  }
  const Augmenter always({.flip = 1.0}, ImageSize{1, 1, 3});
  const std::vector<float> values = augmented(always, coordinates(1, 3));
  EXPECT_FLOAT_EQ(values[0], 2.0F / 255.0F);
  EXPECT_FLOAT_EQ(values[2], 0.0F);
}

TEST(AugmentTest, RandomPartsHaveTheAreaAndRatioAskedFor) {
  const Augmenter augmenter({.crop = Crop::random_resized, .crop_size = 16}, std::nullopt);
  double area = 0;
  double logarithm = 0;
  constexpr int samples = 5000;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const Augmenter::Plan plan = augmenter.plan(600, 800, 3, 0, sample);
    ASSERT_GE(plan.rows.begin, 0);
    ASSERT_GE(plan.columns.begin, 0);
    ASSERT_LE(plan.rows.begin + plan.rows.length, 600);
    ASSERT_LE(plan.columns.begin + plan.columns.length, 800);
    const double share = plan.rows.length * plan.columns.length / (600.0 * 800.0);
    const double ratio = plan.columns.length / plan.rows.length;
    ASSERT_GT(share, 0.079);
    ASSERT_LE(share, 1.0);
    ASSERT_GT(ratio, 0.745);
    ASSERT_LT(ratio, 1.341);
    area += share / samples;
    logarithm += std::log(ratio) / samples;
  }
  // Large parts fit less often, above all tall ones: 20,000 draws of torchvision's own function have these
  // means.
  EXPECT_NEAR(area, 0.4344, 0.015);
  EXPECT_NEAR(logarithm, 0.0315, 0.01);
}

TEST(AugmentTest, APartThatNeverFitsIsTheLargestCentralOne) {
  const Augmenter augmenter({.crop = Crop::random_resized, .crop_size = 8, .area = {0.9, 1.0}}, std::nullopt);
  const Augmenter::Plan wide = augmenter.plan(30, 300, 3, 0, 0);
  EXPECT_EQ(wide.rows.begin, 0);
  EXPECT_EQ(wide.rows.length, 30);
  EXPECT_EQ(wide.columns.begin, 130);
  EXPECT_EQ(wide.columns.length, 40);
  const Augmenter::Plan tall = augmenter.plan(300, 30, 3, 0, 0);
  EXPECT_EQ(tall.rows.begin, 130);
  EXPECT_EQ(tall.rows.length, 40);
  EXPECT_EQ(tall.columns.length, 30);
}

TEST(AugmentTest, PlansAreAFunctionOfSeedEpochAndSample) {
  const Augmenter augmenter(photograph_training(32), std::nullopt);
  const auto plan = [&](std::uint64_t seed, std::int64_t epoch, std::int64_t sample) {
    const Augmenter::Plan drawn = augmenter.plan(500, 400, seed, epoch, sample);
    return std::vector<double>{drawn.rows.begin, drawn.rows.length, drawn.columns.begin,
                               drawn.columns.length};
  };
  EXPECT_EQ(plan(1, 2, 3), plan(1, 2, 3));
  EXPECT_NE(plan(1, 2, 3), plan(2, 2, 3));
  EXPECT_NE(plan(1, 2, 3), plan(1, 3, 3));
  EXPECT_NE(plan(1, 2, 3), plan(1, 2, 4));
}

TEST(AugmentTest, ScaledDecodingStaysTwiceTheSizeInDemand) {
  const Augmentation augmentation = {.resize = 50, .crop = Crop::center, .crop_size = 40};
  const Augmenter augmenter(augmentation, std::nullopt);
  EXPECT_EQ(augmenter.plan(199, 400, 1, 0, 0).eighths, 8);
  EXPECT_EQ(augmenter.plan(200, 400, 1, 0, 0).eighths, 4);
  EXPECT_EQ(augmenter.plan(400, 400, 1, 0, 0).eighths, 2);
  EXPECT_EQ(augmenter.plan(1000, 800, 1, 0, 0).eighths, 1);
  Augmentation full = augmentation;
  full.scaled_decoding = false;
  EXPECT_EQ(Augmenter(full, std::nullopt).plan(1000, 800, 1, 0, 0).eighths, 8);
}

TEST(AugmentTest, ScaledDecodingHardlyChangesTheResult) {
  for (const int orientation : {1, 3, 6}) {
    test::JpegOptions jpeg;
    jpeg.exif = test::exif_segment(orientation);
    const test::Bytes file = test::jpeg_file(test::waves(333, 450, 3), jpeg);
    std::vector<std::vector<float>> results;
    for (const bool scaled : {false, true}) {
      const Augmenter augmenter(
          {.resize = 40, .crop = Crop::center, .crop_size = 32, .scaled_decoding = scaled}, std::nullopt);
      const auto decoder = open_image(test::as_bytes(file));
      const Augmenter::Plan plan = augmenter.plan(decoder->info().height, decoder->info().width, 1, 0, 0);
      EXPECT_EQ(plan.eighths, scaled ? 2 : 8);
      Image image;
      decoder->decode(image, plan.eighths);
      results.push_back(augmented(augmenter, std::move(image), plan));
    }
    double difference = 0;
    for (std::size_t i = 0; i < results[0].size(); ++i) {
      difference += std::abs(results[0][i] - results[1][i]) / static_cast<double>(results[0].size());
    }
    EXPECT_LT(difference, 1.0 / 255) << orientation;
  }
}

TEST(AugmentTest, LoadsAFile) {
  const test::TemporaryFolder folder;
  const std::string path = (folder / "a.png").string();
  test::write_plain_file(path, test::as_text(test::png_file(coordinates(4, 5))));
  const Augmenter augmenter({.crop = Crop::center, .crop_size = 2}, std::nullopt);
  std::vector<float> values(12);
  augmenter.load(path, values.data());
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_FLOAT_EQ(values[4 * c], 18.0F / 255.0F);
    EXPECT_FLOAT_EQ(values[4 * c + 3], 35.0F / 255.0F);
  }
  test::write_plain_file(path, "");
  EXPECT_EQ(error_text([&] { augmenter.load(path, values.data()); }),
            "[image] " + path + ": the file is empty");
}

TEST(AugmentTest, HasATextOfWhatItDoes) {
  EXPECT_EQ(Augmentation{}.text(), "");
  EXPECT_EQ(photograph_evaluation().text(),
            "resize=256 crop=center[224, 224] mean=[0.485, 0.456, 0.406] deviation=[0.229, 0.224, 0.225]");
  EXPECT_EQ((Augmentation{.channels = 1, .crop = Crop::random, .padding = 4, .flip = 0.5}.text()),
            "channels=1 crop=random padding=4 flip=0.5");
  EXPECT_EQ(
      (Augmentation{.crop = Crop::random_resized, .crop_size = {8, 9}, .scaled_decoding = false}.text()),
      "crop=random_resized[8, 9] area=[0.08, 1] ratio=[0.75, 1.3333333333333333] scaled_decoding=false");
}

TEST(AugmentTest, WhatDoesNotFitIsSaid) {
  const auto text = [](const Augmentation& augmentation, std::optional<ImageSize> set = ImageSize{3, 8, 8}) {
    return error_text([&] { Augmenter(augmentation, set); });
  };
  EXPECT_EQ(
      text({}, std::nullopt),
      "[augmentation] the set's images have different sizes: the network needs one; hint: say which with a "
      "crop and its size, after a resize perhaps");
  EXPECT_EQ(text({.channels = 2}), "[augmentation] channels is 2, expected 1 or 3 (or 0: the set's)");
  EXPECT_EQ(text({.resize = -1}), "[augmentation] resize is -1, expected 0 to 65536");
  EXPECT_EQ(text({.crop_size = 3}),
            "[augmentation] has a crop size but no crop; hint: crop is center, random or random_resized");
  EXPECT_EQ(text({.crop = Crop::center, .crop_size = {3, 0}}),
            "[augmentation] crop width is 0, expected at least 1");
  EXPECT_EQ(text({.crop = Crop::center, .padding = 2}),
            "[augmentation] padding goes with crop random, not with center");
  EXPECT_EQ(text({.resize = 8, .crop = Crop::random_resized}),
            "[augmentation] crop random_resized resizes by itself: resize must be left out");
  EXPECT_EQ(text({.crop = Crop::random_resized, .area = {0.5, 1.5}}),
            "[augmentation] area is [0.5, 1.5], expected 0 < first <= second <= 1");
  EXPECT_EQ(text({.crop = Crop::random_resized, .ratio = {2, 1}}),
            "[augmentation] ratio is [2, 1], expected 0 < first <= second");
  EXPECT_EQ(text({.flip = 1.5}), "[augmentation] flip is 1.5, expected a probability from 0 to 1");
  EXPECT_EQ(text({.mean = {1, 2}}),
            "[augmentation] mean has 2 values, expected 1 or 3: one for each channel");
  EXPECT_EQ(text({.channels = 1, .deviation = {1, 2, 3}}),
            "[augmentation] deviation has 3 values, expected 1: there is one channel");
  EXPECT_EQ(text({.deviation = {0}}),
            "[augmentation] deviation is 0 and mean 0, expected a positive and a finite number");
}

}  // namespace
}  // namespace purine::data
