#include "purine/core/version.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace purine {
namespace {

TEST(VersionTest, IsThreeNumbers) {
  EXPECT_TRUE(std::regex_match(std::string(version()), std::regex("[0-9]+\\.[0-9]+\\.[0-9]+"))) << version();
  EXPECT_TRUE(std::regex_match(std::string(build_id()), std::regex("[0-9.]+(\\+[0-9a-f]{12,})?")))
      << build_id();
  EXPECT_TRUE(build_id().starts_with(version())) << build_id();
}

}  // namespace
}  // namespace purine
