#include "purine/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "purine/core/error.h"

namespace purine::data {
namespace {

std::vector<std::int64_t> epoch_of(const Sampler& sampler, std::int64_t epoch) {
  std::vector<std::int64_t> samples;
  for (std::int64_t place = 0; place < sampler.size(); ++place)
    samples.push_back(sampler.sample(epoch, place));
  return samples;
}

TEST(SamplerTest, CountsIterationsThroughEpochs) {
  const Sampler sampler(10, 4, 1, true);
  EXPECT_EQ(sampler.batches_per_epoch(), 3);
  EXPECT_EQ(sampler.last_batch_size(), 2);
  const std::vector<std::int64_t> sizes = {4, 4, 2, 4, 4, 2, 4};
  for (std::int64_t iteration = 0; iteration < 7; ++iteration) {
    EXPECT_EQ(sampler.batch_size(iteration), sizes[static_cast<std::size_t>(iteration)]);
    EXPECT_EQ(sampler.position(iteration), (Sampler::Position{iteration / 3, iteration % 3}));
    EXPECT_EQ(sampler.iteration(sampler.position(iteration)), iteration);
  }
}

TEST(SamplerTest, ABatchThatDividesTheSetIsNeverShort) {
  const Sampler sampler(12, 4, 1, true);
  EXPECT_EQ(sampler.batches_per_epoch(), 3);
  EXPECT_EQ(sampler.last_batch_size(), 4);
  for (std::int64_t iteration = 0; iteration < 9; ++iteration) EXPECT_EQ(sampler.batch_size(iteration), 4);
}

TEST(SamplerTest, EveryEpochIsAnotherPermutation) {
  const Sampler sampler(1000, 64, 7, true);
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<std::int64_t> samples = epoch_of(sampler, epoch);
    orders.insert(samples);
    std::sort(samples.begin(), samples.end());
    for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(samples[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(orders.size(), 5U);
  EXPECT_NE(epoch_of(Sampler(1000, 64, 8, true), 0), epoch_of(sampler, 0));
  EXPECT_EQ(epoch_of(Sampler(1000, 10, 7, true), 3), epoch_of(sampler, 3)) << "depends on the batch size";
}

TEST(SamplerTest, UnshuffledIsInOrder) {
  const Sampler sampler(5, 2, 7, false);
  EXPECT_EQ(epoch_of(sampler, 3), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(sampler.order(3), nullptr);
}

TEST(SamplerTest, AllPermutationsAreEquallyLikely) {
  // 24 permutations of 4, 24,000 epochs: chi-squared with 23 degrees of freedom is below 49.7 in 99.9% of all
  // seeds, and this one is fixed.
  const Sampler sampler(4, 2, 3, true);
  std::map<std::vector<std::int64_t>, int> counts;
  for (std::int64_t epoch = 0; epoch < 24000; ++epoch) ++counts[epoch_of(sampler, epoch)];
  ASSERT_EQ(counts.size(), 24U);
  double statistic = 0;
  for (const auto& [order, count] : counts) statistic += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(statistic, 49.7);
}

TEST(SamplerTest, TwoEpochsAtOnceFromManyThreads) {
  const Sampler sampler(5000, 10, 11, true);
  const std::vector<std::vector<std::int64_t>> expected = {epoch_of(Sampler(5000, 10, 11, true), 0),
                                                           epoch_of(Sampler(5000, 10, 11, true), 1)};
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, -1);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      int differing = 0;
      for (std::int64_t place = 0; place < 5000; ++place) {
        const std::size_t epoch = (t + static_cast<std::size_t>(place)) % 2;
        const std::int64_t sample = sampler.sample(static_cast<std::int64_t>(epoch), place);
        if (sample != expected[epoch][static_cast<std::size_t>(place)]) ++differing;
      }
      wrong[t] = differing;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
  const auto kept = sampler.order(0);
  sampler.order(1);
  EXPECT_EQ(sampler.order(0), kept) << "the order of the epoch that ends was made anew";
}

TEST(SamplerTest, RefusesWhatIsNoSet) {
  try {
    Sampler(0, 4, 1, true);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[sampler] there are 0 samples, expected 1 to 2^32 - 1");
  }
  try {
    Sampler(4, 0, 1, true);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[sampler] a batch has 0 samples, expected at least 1");
  }
}

}  // namespace
}  // namespace purine::data
