#include "purine/io/background_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/support/watchdog.h"

namespace purine::io {
namespace {

class BackgroundOutputTest : public testing::Test {
 protected:
  BackgroundOutputTest() {
    EXPECT_EQ(::pipe(ends_), 0);
    stream_ = ::fdopen(ends_[1], "w");
  }
  ~BackgroundOutputTest() override {
    if (stream_ != nullptr) std::fclose(stream_);
    ::close(ends_[0]);
  }
  std::string read_some() {
    std::string text(1 << 20, '\0');
    text.resize(static_cast<std::size_t>(::read(ends_[0], text.data(), text.size())));
    return text;
  }

  Watchdog watchdog_;
  int ends_[2] = {};
  std::FILE* stream_ = nullptr;
  std::stop_source stop_;
};

TEST_F(BackgroundOutputTest, WritesAllInOrder) {
  std::string expected;
  {
    BackgroundOutput output(stream_, stop_.get_token());
    for (int i = 0; i < 1000; ++i) {
      output.write(std::to_string(i) + "\n");
      expected += std::to_string(i) + "\n";
    }
    output.flush();
    EXPECT_EQ(output.error_number(), 0);
  }
  EXPECT_EQ(read_some(), expected);
}

TEST_F(BackgroundOutputTest, AReaderThatDoesNotReadHoldsNobodyUpOnceAStopIsRequested) {
  const std::string much(700'000, 'x');  // more than a pipe holds
  {
    BackgroundOutput output(stream_, stop_.get_token());
    output.write(much);
    output.write(much);
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      stop_.request_stop();
    });
    output.write(much);
    output.write("end\n");
  }
  std::size_t left = 3 * much.size() + 4;
  left -= read_some().size();
  // What is left comes when it is read after all.
  while (left > 0) left -= read_some().size();
}

TEST_F(BackgroundOutputTest, TellsWhatFailed) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  {
    BackgroundOutput output(full, stop_.get_token());
    output.write("text\n");
    output.flush();
    EXPECT_EQ(output.error_number(), ENOSPC);
    EXPECT_FALSE(output.nobody_reads());
  }
  std::fclose(full);
}

}  // namespace
}  // namespace purine::io
