#include "purine/core/one_line.h"

#include <gtest/gtest.h>

namespace purine {
namespace {

TEST(OneLineTest, WritesControlCharactersOut) {
  EXPECT_EQ(one_line("a\nb\tc\rd\x1b[2Je\x7f"), "a\\nb\\tc\\rd\\x1b[2Je\\x7f");
  EXPECT_EQ(one_line(std::string("nul\0", 4)), "nul\\x00");
}

TEST(OneLineTest, LeavesEverythingElse) {
  EXPECT_EQ(one_line(""), "");
  EXPECT_EQ(one_line("T-shirt \\ größe \xff"), "T-shirt \\ größe \xff");
}

}  // namespace
}  // namespace purine
