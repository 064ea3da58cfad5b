#include "purine/data/class_counts.h"

#include <gtest/gtest.h>

namespace purine::data {
namespace {

using Texts = std::vector<std::string>;

std::vector<std::string> numbers(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

TEST(ClassCountsTest, OneLargeLabelMakesClassesThatNoImageHas) {
  std::vector<std::int64_t> counts(78, 0);
  for (std::size_t label = 0; label < 10; ++label) counts[label] = 6000;
  counts[3] = 5999;
  counts[77] = 1;
  EXPECT_EQ(doubts_about(numbers(78), counts),
            (Texts{"67 of 78 classes have no image: 10 to 76",
                   "class 77 has 1 image, and half of the classes have 6000 or more"}));
  // The test set alone has it: the training set has no image of the last class either.
  counts[77] = 0;
  EXPECT_EQ(doubts_about(numbers(78), counts), Texts{"68 of 78 classes have no image: 10 to 77"});
}

TEST(ClassCountsTest, SetsThatAreFineGiveNone) {
  EXPECT_EQ(doubts_about(numbers(3), std::vector<std::int64_t>{500, 6, 700}), Texts{});
  EXPECT_EQ(doubts_about(numbers(2), std::vector<std::int64_t>{1, 99}), Texts{}) << "a small set";
  EXPECT_EQ(doubts_about(numbers(1), std::vector<std::int64_t>{7}), Texts{});
  EXPECT_EQ(doubts_about(Texts{}, std::vector<std::int64_t>{}), Texts{});
  EXPECT_EQ(doubts_about(numbers(2), std::vector<std::int64_t>{0, 0}), Texts{}) << "nothing to compare with";
}

TEST(ClassCountsTest, ClassesFarSmallerThanTheOthersAreNamed) {
  EXPECT_EQ(doubts_about(Texts{"cat", "dog", "bi\nrd"}, std::vector<std::int64_t>{900, 900, 9}),
            Texts{"class 2 (bi\\nrd) has 9 images, and half of the classes have 900 or more"});
  EXPECT_EQ(doubts_about(Texts{"cat", "dog", "bird"}, std::vector<std::int64_t>{900, 900, 10}), Texts{});
  std::vector<std::int64_t> counts(20, 1000);
  for (std::size_t label = 0; label < 8; ++label) counts[label] = 2;
  const Texts doubts = doubts_about(numbers(20), counts);
  ASSERT_EQ(doubts.size(), 6U);
  EXPECT_EQ(doubts[4], "class 4 has 2 images, and half of the classes have 1000 or more");
  EXPECT_EQ(doubts[5], "3 more classes are as small");
}

TEST(ClassCountsTest, RangesOfClassesStayShort) {
  std::vector<std::int64_t> counts(16, 0);
  for (std::size_t label = 0; label < 16; label += 2) counts[label] = 5;
  EXPECT_EQ(doubts_about(numbers(16), counts), Texts{"8 of 16 classes have no image: 1, 3, 5, 7, 9, …"});
  counts.assign(2, 0);
  counts[1] = 4;
  EXPECT_EQ(doubts_about(numbers(2), counts), Texts{"1 of 2 classes has no image: 0"});
}

}  // namespace
}  // namespace purine::data
