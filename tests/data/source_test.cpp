#include "purine/data/source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "purine/data/sampler.h"
#include "purine/graph/transform.h"
#include "tests/data/image_files.h"
#include "tests/data/run_source.h"
#include "tests/support/error_text.h"

namespace purine::data {
namespace {

using test::BatchValues;
using test::BoundSource;
using test::error_text;
using test::piece_of;

// 2 x 3 images in three channels whose first value is the sample's number, labels are number modulo 7; the
// numbers in `broken` can't be read.
class CountingDataset final : public Dataset {
 public:
  explicit CountingDataset(std::int64_t size, std::set<std::int64_t> broken = {})
      : size_(size), broken_(std::move(broken)) {
    class_names_ = {"a", "b", "c", "d", "e", "f", "g"};
  }

  std::int64_t size() const override { return size_; }
  std::int64_t label(std::int64_t index) const override { return index % 7; }
  std::optional<ImageSize> image_size() const override { return ImageSize{3, 2, 3}; }
  std::string sample_name(std::int64_t index) const override { return "set/" + std::to_string(index); }
  void read(std::int64_t index, Image& image, std::vector<std::byte>& /*file*/,
            const ScaleChoice& /*choose_scale*/) const override {
    if (broken_.count(index) != 0) throw Error("image", "is broken").at(sample_name(index));
    image = test::make_image(2, 3, 3,
                             [&](int y, int x, int c) { return static_cast<int>(index) + 40 * (y + x + c); });
  }
  bool encoded() const override { return true; }
  std::uint64_t fingerprint() const override { return 0xabcd; }

 private:
  std::int64_t size_;
  std::set<std::int64_t> broken_;
};

DatasetPtr counting(std::int64_t size, std::set<std::int64_t> broken = {}) {
  return std::make_shared<CountingDataset>(size, std::move(broken));
}

std::shared_ptr<const DataSource> make_source(DatasetPtr dataset, SourceOptions options) {
  return std::make_shared<DataSource>(std::move(dataset), std::move(options));
}

std::vector<std::int64_t> samples_of(const BatchValues& values) {
  std::vector<std::int64_t> samples;
  for (std::size_t i = 0; i < values.labels.size(); ++i) {
    samples.push_back(std::lround(values.images[i * 18] * 255));
    EXPECT_EQ(values.labels[i], samples.back() % 7);
  }
  return samples;
}

TEST(SourceTest, BringsTheOrderOfTheSamplerAndTheShortBatch) {
  const auto contract = make_source(counting(23), {.batch = 5, .seed = 9});
  EXPECT_EQ(contract->batches_per_epoch(), 5);
  EXPECT_EQ(contract->batch_size(3), 5);
  EXPECT_EQ(contract->batch_size(4), 3);
  const BoundSource full(contract);
  const BoundSource last(piece_of(contract, 0, 3, 3));
  EXPECT_EQ(full.parts(), 5);
  const Sampler sampler(23, 5, 9, true);
  for (const std::int64_t epoch : {0, 1, 7}) {
    std::vector<std::int64_t> samples;
    for (std::int64_t batch = 0; batch < 5; ++batch) {
      const BoundSource& source = batch == 4 ? last : full;
      for (const std::int64_t sample : samples_of(source.run(epoch * 5 + batch))) samples.push_back(sample);
    }
    ASSERT_EQ(samples.size(), 23U);
    for (std::int64_t place = 0; place < 23; ++place) {
      EXPECT_EQ(samples[static_cast<std::size_t>(place)], sampler.sample(epoch, place));
    }
  }
}

TEST(SourceTest, ATestSetComesInOrderUnlessShuffled) {
  const auto in_order = make_source(counting(8), {.batch = 4, .subset = Subset::test});
  EXPECT_EQ(samples_of(BoundSource(in_order).run(1)), (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(samples_of(BoundSource(in_order).run(3)), (std::vector<std::int64_t>{4, 5, 6, 7}));
  const auto shuffled = make_source(counting(200), {.batch = 200, .subset = Subset::test, .shuffle = true});
  EXPECT_NE(samples_of(BoundSource(shuffled).run(0)), samples_of(BoundSource(shuffled).run(1)));
}

TEST(SourceTest, TheSeedIsTheRunsWhereNoneIsGiven) {
  const auto open = make_source(counting(200), {.batch = 100});
  const auto fixed = make_source(counting(200), {.batch = 100, .seed = 5});
  EXPECT_EQ(BoundSource(open, 5).run(0), BoundSource(fixed, 6).run(0));
  EXPECT_NE(BoundSource(open, 6).run(0), BoundSource(fixed, 6).run(0));
}

SourceOptions with_random_crops(std::int64_t batch) {
  return {.batch = batch, .seed = 3, .augmentation = {.crop = Crop::random, .padding = 2, .flip = 0.5}};
}

TEST(SourceTest, UnequalPiecesAreTheWhole) {
  const auto contract = make_source(counting(50), with_random_crops(16));
  for (const std::int64_t iteration : {0, 2, 5}) {
    const BatchValues whole = BoundSource(contract).run(iteration);
    BatchValues joined;
    for (const auto& [begin, end] : {std::pair{0, 3}, {3, 4}, {4, 16}}) {
      const BatchValues part = BoundSource(piece_of(contract, begin, end, 16)).run(iteration);
      joined.images.insert(joined.images.end(), part.images.begin(), part.images.end());
      joined.labels.insert(joined.labels.end(), part.labels.begin(), part.labels.end());
    }
    EXPECT_EQ(joined, whole);
  }
}

TEST(SourceTest, PiecesOfPiecesAndOfTheShortBatch) {
  const auto contract = make_source(counting(50), with_random_crops(16));
  const ContractPtr last = piece_of(contract, 0, 2, 2);
  const BatchValues whole = BoundSource(last).run(3);
  ASSERT_EQ(whole.labels.size(), 2U);
  const BatchValues second = BoundSource(piece_of(last, 1, 2, 2)).run(3);
  EXPECT_EQ(second.labels[0], whole.labels[1]);
  const ContractPtr middle = piece_of(piece_of(contract, 4, 12, 16), 2, 5, 8);
  EXPECT_EQ(dynamic_cast<const DataSource&>(*middle).part().begin, 6);
  const BatchValues six_to_nine = BoundSource(middle).run(0);
  const BatchValues all = BoundSource(contract).run(0);
  EXPECT_TRUE(std::equal(six_to_nine.labels.begin(), six_to_nine.labels.end(), all.labels.begin() + 6));
  EXPECT_TRUE(std::equal(six_to_nine.images.begin(), six_to_nine.images.end(), all.images.begin() + 6 * 18));
  EXPECT_EQ(
      error_text([&] { piece_of(middle, 0, 2, 2); }),
      "[data_source] is samples [6, 9) of a batch of 16; another batch size (2) doesn't say which samples "
      "they become; hint: change the batch size first, then split");
  EXPECT_EQ(BoundSource(piece_of(contract, 5, 5, 16)).run(0).labels.size(), 0U) << "a device without samples";
}

TEST(SourceTest, ThreadsOrderAndEarlierRunsChangeNothing) {
  const auto contract = make_source(counting(90), with_random_crops(30));
  const BoundSource used(contract);
  for (const std::int64_t iteration : {4, 0, 3, 4}) {
    const BatchValues expected = BoundSource(contract).run(iteration);
    for (const int threads : {1, 2, 4, 16}) EXPECT_EQ(used.run(iteration, threads), expected) << threads;
  }
}

TEST(SourceTest, ASampleIsAugmentedTheSameInAnyBatch) {
  // The same order in batches of 10 and of 4: the place in the batch doesn't matter.
  const BatchValues ten = BoundSource(make_source(counting(20), with_random_crops(10))).run(0);
  const BatchValues four = BoundSource(make_source(counting(20), with_random_crops(4))).run(1);
  EXPECT_TRUE(std::equal(four.images.begin(), four.images.end(), ten.images.begin() + 4 * 18));
  const BatchValues later = BoundSource(make_source(counting(20), with_random_crops(20))).run(1);
  EXPECT_FALSE(std::equal(ten.images.begin(), ten.images.end(), later.images.begin()));
}

TEST(SourceTest, WritesChannelsLastWhereAskedFor) {
  const auto contract = make_source(counting(6), {.batch = 6, .seed = 2});
  const BatchValues plain = BoundSource(contract).run(0);
  const BatchValues last = BoundSource(contract, 1, Layout::channels_last).run(0);
  EXPECT_EQ(plain.labels, last.labels);
  for (std::size_t n = 0; n < 6; ++n) {
    for (std::size_t pixel = 0; pixel < 6; ++pixel) {
      for (std::size_t c = 0; c < 3; ++c) {
        ASSERT_EQ(last.images[n * 18 + pixel * 3 + c], plain.images[n * 18 + c * 6 + pixel]);
      }
    }
  }
}

TEST(SourceTest, AnotherBatchSizeThanTheIterationsIsAnError) {
  const auto contract = make_source(counting(23), {.batch = 5});
  EXPECT_EQ(
      error_text([&] { BoundSource(contract).run(9); }),
      "[data_source] iteration 9 has a batch of 3 samples, this program's batch has 5; hint: an epoch's last "
      "batch needs a program of its own batch size");
  EXPECT_EQ(
      error_text([&] { BoundSource(piece_of(contract, 0, 3, 3)).run(8); }),
      "[data_source] iteration 8 has a batch of 5 samples, this program's batch has 3; hint: an epoch's last "
      "batch needs a program of its own batch size");
}

TEST(SourceTest, ABrokenImageIsAnErrorThatNamesIt) {
  const auto contract = make_source(counting(10, {4}), {.batch = 10});
  EXPECT_EQ(error_text([&] { BoundSource(contract).run(0); }), "[image] set/4: is broken");
}

TEST(SourceTest, ASkippedImageIsReplacedByTheNextAndCountedOnce) {
  std::vector<std::string> told;
  const auto skipped = std::make_shared<SkippedImages>(
      [&](const SkippedImages::Entry& entry) { told.push_back(entry.path + ": " + entry.reason); });
  const auto contract =
      make_source(counting(12, {3, 4, 11}),
                  {.batch = 4, .subset = Subset::test, .on_bad_image = OnBadImage::skip, .skipped = skipped});
  const BoundSource source(contract);
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(samples_of(source.run(3 * epoch, 4)), (std::vector<std::int64_t>{0, 1, 2, 5}));
    EXPECT_EQ(samples_of(source.run(3 * epoch + 1, 4)), (std::vector<std::int64_t>{5, 5, 6, 7}));
    EXPECT_EQ(samples_of(source.run(3 * epoch + 2, 4)), (std::vector<std::int64_t>{8, 9, 10, 0}));
  }
  EXPECT_EQ(skipped->count(), 3);
  EXPECT_EQ(skipped->entries()[0].path, "set/11");
  EXPECT_EQ(skipped->entries()[2].path, "set/4");
  std::sort(told.begin(), told.end());
  EXPECT_EQ(told, (std::vector<std::string>{"set/11: is broken", "set/3: is broken", "set/4: is broken"}));
}

TEST(SourceTest, ASetOfBrokenImagesAloneIsAnError) {
  const auto contract = make_source(counting(3, {0, 1, 2}), {.batch = 2, .on_bad_image = OnBadImage::skip});
  EXPECT_EQ(error_text([&] { BoundSource(contract).run(0); }),
            "[data_source] none of the 3 images can be read");
  EXPECT_EQ(contract->skipped().count(), 3);
}

TEST(SourceTest, StandsInAGraph) {
  Graph graph;
  const auto [image, label] =
      source(graph, counting(23), {.batch = 5, .seed = 1, .augmentation = {.flip = 0.5}});
  EXPECT_EQ(image.info().text(), "f32[5, 3, 2, 3]");
  EXPECT_EQ(label.info().text(), "i64[5]");
  EXPECT_EQ(image.path(), "data");
  verify(graph);
  EXPECT_EQ(batch_size(graph), 5);
  ASSERT_EQ(sources(graph).size(), 1U);
  EXPECT_EQ(sources(graph)[0]->samples_per_epoch(), 23);
  EXPECT_EQ(sources(graph)[0]->attributes(),
            "set=000000000000abcd size=23 batch=5 samples=5 seed=1 shuffle=true on_bad_image=error flip=0.5");
  EXPECT_TRUE(sources(graph)[0]->split_rules({})[0].inputs.empty());
  EXPECT_EQ(sources(graph)[0]->cost({}, std::vector{image.info(), label.info()}).operations, 5e8 + 2 * 90);

  Graph last;
  with_batch_size(graph, sources(graph)[0]->batch_size(4), last);
  verify(last);
  EXPECT_EQ(last.tensor(image.index()).info().text(), "f32[3, 3, 2, 3]");
  EXPECT_EQ(sources(last)[0]->options().batch, 5);
  EXPECT_EQ(samples_of(BoundSource(last.op(0).contract_pointer()).run(4)).size(), 3U);
}

TEST(SourceTest, PiecesHaveATextOfTheirOwn) {
  const auto contract = make_source(counting(23), {.batch = 5});
  EXPECT_EQ(piece_of(contract, 1, 3, 5)->attributes(),
            "set=000000000000abcd size=23 batch=5 samples=[1, 3)/5 seed=run shuffle=true on_bad_image=error");
}

TEST(SourceTest, WhatDoesNotFitIsSaid) {
  EXPECT_EQ(error_text([] { make_source(counting(3), {.batch = 4}); }),
            "[data_source] batch is 4, but the train set has only 3 samples");
  EXPECT_EQ(error_text([] { make_source(counting(3), {.batch = 0}); }),
            "[data_source] batch is 0, expected at least 1");
}

TEST(SourceTest, FashionMnistFromDiskToTensor) {
  Graph graph;
  const auto [image, label] =
      idx(graph, "/usr/share/datasets/fashion-mnist", {.batch = 64, .subset = Subset::test});
  EXPECT_EQ(image.info().text(), "f32[64, 1, 28, 28]");
  const DataSource& contract = *sources(graph)[0];
  const BatchValues values = BoundSource(graph.op(0).contract_pointer()).run(1);
  const Image expected = contract.dataset().read(64 + 17);
  EXPECT_EQ(values.labels[17], contract.dataset().label(64 + 17));
  for (std::size_t i = 0; i < 784; ++i) {
    ASSERT_FLOAT_EQ(values.images[17 * 784 + i], static_cast<float>(expected.pixels[i]) / 255.0F);
  }
}

TEST(SyntheticTest, IsRandomWithMeanZeroAndVarianceOne) {
  const auto contract = std::make_shared<SyntheticSource>(
      SyntheticOptions{.batch = 50, .image = {3, 20, 15}, .classes = 10, .seed = 4, .fixed = false});
  const BoundSource source(contract);
  const BatchValues values = source.run(7, 2);
  double sum = 0;
  double squares = 0;
  for (const float value : values.images) {
    sum += value;
    squares += value * value;
  }
  const double count = 45000;
  EXPECT_NEAR(sum / count, 0, 4 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 4 * std::sqrt(0.8 / count)) << "the variance of a square is 4 / 5";
  const std::set<std::int64_t> labels(values.labels.begin(), values.labels.end());
  EXPECT_EQ(labels.size(), 10U);
  EXPECT_EQ(*labels.begin(), 0);
  EXPECT_EQ(*labels.rbegin(), 9);
  EXPECT_NE(source.run(8), values);
  EXPECT_EQ(source.run(7), values);
}

TEST(SyntheticTest, AFixedBatchIsTheFirstEachTime) {
  const SyntheticOptions fixed = {.batch = 6, .image = {3, 5, 3}, .classes = 4, .seed = 4};
  SyntheticOptions changing = fixed;
  changing.fixed = false;
  const BatchValues first = BoundSource(std::make_shared<SyntheticSource>(changing)).run(0);
  const BoundSource source(std::make_shared<SyntheticSource>(fixed));
  EXPECT_EQ(source.run(0), first);
  EXPECT_EQ(source.run(5), first);
}

TEST(SyntheticTest, PiecesAndLayoutsAreTheSameBatch) {
  const ContractPtr contract = std::make_shared<SyntheticSource>(
      SyntheticOptions{.batch = 6, .image = {3, 5, 3}, .classes = 100, .seed = 4, .fixed = false});
  const BatchValues whole = BoundSource(contract).run(2);
  const BatchValues part = BoundSource(piece_of(contract, 2, 5, 6)).run(2);
  EXPECT_TRUE(std::equal(part.images.begin(), part.images.end(), whole.images.begin() + 2 * 45));
  EXPECT_TRUE(std::equal(part.labels.begin(), part.labels.end(), whole.labels.begin() + 2));
  const BatchValues last = BoundSource(contract, 1, Layout::channels_last).run(2);
  for (std::size_t n = 0; n < 6; ++n) {
    for (std::size_t i = 0; i < 45; ++i) {
      ASSERT_EQ(last.images[n * 45 + i], whole.images[n * 45 + i % 3 * 15 + i / 3]);
    }
  }
}

TEST(SyntheticTest, StandsInAGraph) {
  Graph graph;
  const auto [image, label] = synthetic(graph, {.batch = 2, .image = {1, 4, 4}, .classes = 3});
  EXPECT_EQ(image.info().text(), "f32[2, 1, 4, 4]");
  EXPECT_EQ(image.producer().contract().attributes(), "classes=3 batch=2 samples=2 seed=0 fixed=true");
  EXPECT_EQ(batch_size(graph), 2);
  EXPECT_TRUE(sources(graph).empty());
  EXPECT_EQ(error_text([&] { synthetic(graph, {.batch = 2, .classes = 0}); }),
            "[synthetic_source] has batch 2 and 0 classes, expected at least 1 of each");
}

}  // namespace
}  // namespace purine::data
