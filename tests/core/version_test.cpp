#include "purine/core/version.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace purine {
namespace {

TEST(VersionTest, IsThreeNumbers) {
  EXPECT_TRUE(std::regex_match(std::string(version()), std::regex("[0-9]+\\.[0-9]+\\.[0-9]+"))) << version();
}

}  // namespace
}  // namespace purine
