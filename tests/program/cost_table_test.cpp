#include "purine/program/cost_table.h"

#include <gtest/gtest.h>

#include <string>

#include "purine/core/error.h"

namespace purine::program {
namespace {

OperatorCost cost_of(const std::string& path, const std::string& shapes, double seconds) {
  return {path, "relu", "", shapes, "", 2, seconds, 100, 800};
}

CostTable table() {
  CostTable table({"a processor \"X\"", 2, 1e11, 8e9});
  table.add(cost_of("net/one/relu", "f32[100] -> f32[100]", 0.25));
  table.add(cost_of("net/two/relu", "f32[100] -> f32[100]", 0.5));
  table.add(cost_of("net/three/relu", "f32[100] -> f32[100]", 0.75));
  table.add(cost_of("net/four/relu", "f32[7] -> f32[7]", 2));
  return table;
}

TEST(CostTableTest, AnOperatorIsFoundByItsPath) {
  EXPECT_EQ(table().seconds(cost_of("net/three/relu", "f32[100] -> f32[100]", 0)), 0.75);
}

TEST(CostTableTest, AnOperatorOfAnotherPathTakesTheMedianOfItsKind) {
  EXPECT_EQ(table().seconds(cost_of("other/relu", "f32[100] -> f32[100]", 0)), 0.5);
}

TEST(CostTableTest, AnOperatorOfOtherShapesIsNotFoundByItsPath) {
  EXPECT_EQ(table().seconds(cost_of("net/one/relu", "f32[200] -> f32[200]", 0)), std::nullopt);
}

TEST(CostTableTest, TheTextReadsBackAsTheSameTable) {
  CostTable written = table();
  written.add({"net/conv", "conv2d", "stride=[1, 1]", "f32[1, 2] -> f32[3]", "winograd_4", 8, 0.1, 1e15, 3});
  const CostTable read = CostTable::parse(written.text());
  EXPECT_EQ(read.text(), written.text());
  EXPECT_EQ(read.machine().processor, "a processor \"X\"");
  EXPECT_EQ(read.machine().workers, 2);
  EXPECT_EQ(read.machine().operations_per_second, 1e11);
  ASSERT_EQ(read.operators().size(), 5);
  EXPECT_EQ(read.operators()[4].algorithm, "winograd_4");
  EXPECT_EQ(read.operators()[4].seconds, 0.1);
  EXPECT_EQ(read.operators()[4].operations, 1e15);
}

std::string error_of(const std::string& text) {
  try {
    CostTable::parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(CostTableTest, ATextThatIsNoTableIsRefused) {
  EXPECT_EQ(error_of(R"({"format": "another"})"), "[cost table] it isn't one: its format is another");
  EXPECT_EQ(error_of(R"({"format": "purine operator costs", "version": 2})"),
            "[cost table] it has version 2, and 1 is read here");
  const std::string whole = table().text();
  EXPECT_NE(
      error_of(whole.substr(0, whole.size() / 2)).find("hint: purine bench MODEL --save FILE writes one"),
      std::string::npos);
}

TEST(CostTableTest, NegativeTimesAreRefused) {
  CostTable wrong({"", 1, 1, 1});
  wrong.add(cost_of("net/one/relu", "", -1));
  EXPECT_EQ(error_of(wrong.text()), "[cost table] net/one/relu takes less than no time");
}

}  // namespace
}  // namespace purine::program
