#include "purine/core/logging.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <string>

#include "tests/support/error_text.h"

namespace purine {
namespace {

/// Lines with the time of day replaced.
std::string without_times(const std::string& text) {
  return std::regex_replace(text, std::regex("[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}"), "TIME");
}

TEST(LoggingTest, WritesLevelAndMessageToStandardError) {
  testing::internal::CaptureStderr();
  Logger logger(LogLevel::info);
  logger.debug("not shown {}", 1);
  logger.info("epoch {} of {}", 2, 5);
  logger.warning("braces {{}} and {}", "{text}");
  logger.error("failed");
  EXPECT_EQ(without_times(testing::internal::GetCapturedStderr()),
            "TIME info: epoch 2 of 5\nTIME warning: braces {} and {text}\nTIME error: failed\n");
}

TEST(LoggingTest, CopiesShareTheLevelAndThePrefixIsShown) {
  testing::internal::CaptureStderr();
  Logger logger(LogLevel::off, "rank 2");
  const Logger copy = logger;
  copy.error("not shown");
  logger.set_level(LogLevel::debug);
  EXPECT_EQ(copy.level(), LogLevel::debug);
  copy.debug("shown");
  EXPECT_EQ(without_times(testing::internal::GetCapturedStderr()), "TIME rank 2: debug: shown\n");
}

TEST(LoggingTest, TheEnvironmentChoosesTheLevel) {
  ASSERT_EQ(::unsetenv("PURINE_LOG"), 0);
  EXPECT_EQ(log_level_from_environment(), LogLevel::info);
  ASSERT_EQ(::setenv("PURINE_LOG", "warning", 1), 0);
  EXPECT_EQ(log_level_from_environment(), LogLevel::warning);
  EXPECT_EQ(Logger().level(), LogLevel::warning);
  ASSERT_EQ(::setenv("PURINE_LOG", "loud", 1), 0);
  EXPECT_EQ(
      test::error_text([] { log_level_from_environment(); }),
      "[log] PURINE_LOG: `loud` is not a level of messages; hint: the levels are debug, info, warning, error "
      "and off");
  ASSERT_EQ(::unsetenv("PURINE_LOG"), 0);
}

}  // namespace
}  // namespace purine
