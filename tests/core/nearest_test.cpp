#include "purine/core/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace purine {
namespace {

TEST(NearestTest, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("batch", "bacth"), 1u);  // neighbours swapped
  EXPECT_EQ(edit_distance("epochs", "epoch"), 1u);
}

TEST(NearestTest, FindsTheWordThatWasMeant) {
  const std::vector<std::string> keys = {"name", "learning_rate", "momentum", "weight_decay"};
  EXPECT_EQ(nearest("learning_rat", keys), "learning_rate");
  EXPECT_EQ(nearest("Weight-Decay", keys), "weight_decay");
  EXPECT_EQ(nearest("nmae", keys), "name");
  EXPECT_EQ(nearest("epoks", std::vector<std::string>{"steps", "epochs"}), "epochs");
  EXPECT_EQ(nearest("moment", keys), "momentum");
  EXPECT_EQ(nearest("something_else", keys), "");
  EXPECT_EQ(nearest("", keys), "");
}

TEST(NearestTest, KnowsAWordByItsParts) {
  const std::vector<std::string> keys = {"batch", "learning_rate", "weight_decay", "evaluation_batch"};
  EXPECT_EQ(nearest("lr", keys), "learning_rate");
  EXPECT_EQ(nearest("WD", keys), "weight_decay");
  EXPECT_EQ(nearest("decay", keys), "weight_decay");
  EXPECT_EQ(nearest("batch_size", keys), "batch");
  EXPECT_EQ(nearest("test-batch", keys), "batch");
  EXPECT_EQ(nearest("b", keys), "");
  EXPECT_EQ(nearest("_", keys), "");
  EXPECT_EQ(nearest("--", keys), "");
  EXPECT_EQ(nearest("rates", std::vector<std::string>{"", "_"}), "");
}

TEST(NearestTest, TakesTheFirstOfEquals) {
  const std::vector<std::string> words = {"beta1", "beta2"};
  EXPECT_EQ(nearest("beta3", words), "beta1");
}

}  // namespace
}  // namespace purine
