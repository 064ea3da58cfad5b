#include "purine/io/json_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace purine::io {
namespace {

TEST(JsonTextTest, Texts) {
  EXPECT_EQ(json_text("a \"b\"\\\n\x01"), R"("a \"b\"\\\n\u0001")");
  EXPECT_EQ(json_text("\xc3\xa9"), "\"\xc3\xa9\"");
  EXPECT_EQ(json_text("a\xff"), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(json_text(""), "\"\"");
}

TEST(JsonTextTest, NumbersAreShortAndStayFloating) {
  EXPECT_EQ(json_number(0.1), "0.1");
  EXPECT_EQ(json_number(0.1F), "0.1");
  EXPECT_EQ(json_number(1.0), "1.0");
  EXPECT_EQ(json_number(-0.0F), "-0.0");
  EXPECT_EQ(json_number(1e22), "1e+22");
  EXPECT_EQ(json_number(std::numeric_limits<double>::infinity()), "\"Infinity\"");
  EXPECT_EQ(json_number(-std::numeric_limits<float>::infinity()), "\"-Infinity\"");
  EXPECT_EQ(json_number(std::numeric_limits<double>::quiet_NaN()), "\"NaN\"");
}

}  // namespace
}  // namespace purine::io
