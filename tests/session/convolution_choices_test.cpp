#include "purine/session/convolution_choices.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "purine/io/atomic_file.h"
#include "tests/support/temporary_folder.h"

namespace purine {
namespace {

using cpu::ConvolutionAlgorithm;
using cpu::ConvolutionPass;
using cpu::ConvolutionProblem;

/// 3 x 3 over an image of so many channels.
ConvolutionProblem problem_of(std::int64_t channels) {
  return {{2, channels, 12, 12},
          {16, channels, 3, 3},
          {2, 16, 12, 12},
          {.padding = {1, 1, 1, 1}},
          Layout::channels_last};
}

class ConvolutionChoicesTest : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "cache" / "choices.json"; }
  /// The algorithm that the file is made to hold for a problem, whatever is the fastest.
  void write_choice(std::int64_t channels, const std::string& algorithm) {
    ConvolutionChoices choices(file());
    const std::string measured(cpu::name_of(choices.choose(ConvolutionPass::forward, problem_of(channels))));
    choices.save();
    std::string text = io::read_file(file());
    const std::size_t at = text.find("\"" + measured + "\"");
    ASSERT_NE(at, std::string::npos);
    io::write_file(file(), text.replace(at, measured.size() + 2, "\"" + algorithm + "\""));
  }

  test::TemporaryFolder folder_;
};

TEST_F(ConvolutionChoicesTest, EachIsMeasuredOnce) {
  ConvolutionChoices choices({});
  const ConvolutionAlgorithm first = choices.choose(ConvolutionPass::forward, problem_of(16));
  EXPECT_EQ(choices.choose(ConvolutionPass::forward, problem_of(16)), first);
  EXPECT_EQ(choices.measured(), 1);
  choices.choose(ConvolutionPass::input_gradient, problem_of(16));
  choices.choose(ConvolutionPass::weight_gradient, problem_of(16));
  choices.choose(ConvolutionPass::forward, problem_of(8));
  EXPECT_EQ(choices.measured(), 4);
}

TEST_F(ConvolutionChoicesTest, TheFileIsBelieved) {
  for (const std::string algorithm : {"direct", "winograd_2", "winograd_4"}) {
    write_choice(16, algorithm);
    ConvolutionChoices choices(file());
    EXPECT_EQ(cpu::name_of(choices.choose(ConvolutionPass::forward, problem_of(16))), algorithm);
    EXPECT_EQ(choices.measured(), 0);
    std::filesystem::remove(file());
  }
}

TEST_F(ConvolutionChoicesTest, AnAlgorithmThatCannotComputeItIsNot) {
  ConvolutionProblem strided = problem_of(16);
  strided.options.stride = {2, 2};
  strided.output = {2, 16, 6, 6};
  {
    ConvolutionChoices choices(file());
    EXPECT_EQ(choices.choose(ConvolutionPass::forward, strided), ConvolutionAlgorithm::direct);
    choices.save();
  }
  std::string text = io::read_file(file());
  io::write_file(file(), text.replace(text.find("\"direct\""), 8, "\"winograd_4\""));
  ConvolutionChoices choices(file());
  EXPECT_EQ(choices.choose(ConvolutionPass::forward, strided), ConvolutionAlgorithm::direct);
}

TEST_F(ConvolutionChoicesTest, ADamagedFileIsMeasuredAnew) {
  write_choice(16, "direct");
  const std::string whole = io::read_file(file());
  const std::vector<std::string> damaged = {
      "",
      "{",
      whole.substr(0, whole.size() / 2),
      "[1, 2]",
      "{\"format\": \"another\"}",
      std::string(100, '\0'),
      "{\"format\": \"purine convolution choices 1\", \"machines\": 7}"};
  for (const std::string& text : damaged) {
    io::write_file(file(), text);
    ConvolutionChoices choices(file());
    choices.choose(ConvolutionPass::forward, problem_of(16));
    EXPECT_EQ(choices.measured(), 1) << text;
    choices.save();
    ConvolutionChoices again(file());
    again.choose(ConvolutionPass::forward, problem_of(16));
    EXPECT_EQ(again.measured(), 0) << text;
  }
}

TEST_F(ConvolutionChoicesTest, AFileThatCannotBeWrittenDoesNoHarm) {
  const std::filesystem::path below_a_file = folder_.path() / "file" / "choices.json";
  io::write_file(folder_.path() / "file", "no folder");
  ConvolutionChoices choices(below_a_file);
  choices.choose(ConvolutionPass::forward, problem_of(16));
  choices.save();
  EXPECT_FALSE(std::filesystem::exists(below_a_file));
}

TEST_F(ConvolutionChoicesTest, SeveralAtATimeKeepWhatEachHasMeasured) {
  std::vector<std::jthread> threads;
  for (std::int64_t channels = 1; channels <= 4; ++channels) {
    threads.emplace_back([this, channels] {
      for (std::int64_t i = 0; i < 8; ++i) {
        ConvolutionChoices choices(file());
        choices.choose(ConvolutionPass::forward, problem_of(4 * i + channels));
        choices.save();
      }
    });
  }
  threads.clear();
  ConvolutionChoices choices(file());
  for (std::int64_t channels = 1; channels <= 32; ++channels) {
    choices.choose(ConvolutionPass::forward, problem_of(channels));
  }
  EXPECT_EQ(choices.measured(), 0);
}

TEST_F(ConvolutionChoicesTest, SeveralThreadsMeasureEachOnce) {
  constexpr std::int64_t problems = 6;
  ConvolutionChoices choices(file());
  std::vector<std::vector<ConvolutionAlgorithm>> chosen(4);
  std::vector<std::jthread> threads;
  for (std::vector<ConvolutionAlgorithm>& by_one : chosen) {
    threads.emplace_back([&] {
      for (std::int64_t channels = 1; channels <= problems; ++channels) {
        by_one.push_back(choices.choose(ConvolutionPass::forward, problem_of(channels)));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(choices.measured(), problems);
  for (const std::vector<ConvolutionAlgorithm>& by_one : chosen) EXPECT_EQ(by_one, chosen.front());
}

TEST_F(ConvolutionChoicesTest, TheEnvironmentSaysWhere) {
  const auto file_with = [](const char* cache, const char* xdg, const char* home) {
    ::setenv("PURINE_CACHE", cache, 1);
    ::setenv("XDG_CACHE_HOME", xdg, 1);
    ::setenv("HOME", home, 1);
    return ConvolutionChoices::default_file().string();
  };
  const std::string home = ::getenv("HOME") != nullptr ? ::getenv("HOME") : "";
  EXPECT_EQ(file_with("", "", "/users/somebody"), "/users/somebody/.cache/purine/convolutions.json");
  EXPECT_EQ(file_with("", "/cache", "/users/somebody"), "/cache/purine/convolutions.json");
  EXPECT_EQ(file_with("/mine", "/cache", "/users/somebody"), "/mine/convolutions.json");
  EXPECT_EQ(file_with("off", "/cache", "/users/somebody"), "");
  EXPECT_EQ(file_with("", "", ""), "");
  ::unsetenv("PURINE_CACHE");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace purine
