#include "purine/train/run_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/error_text.h"
#include "tests/support/plain_file.h"
#include "tests/support/temporary_folder.h"

namespace purine::train {
namespace {

using test::error_text;

TEST(RunFolderTest, IsMadeOnce) {
  const test::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path() / "runs" / "first";
  { const RunFolder run = RunFolder::create(folder); }
  EXPECT_TRUE(std::filesystem::is_directory(folder));
  EXPECT_EQ(error_text([&] { RunFolder::create(folder); }),
            "[run folder] " + folder.string() +
                ": exists already; hint: go on with its run (--resume), or take another folder (--new-run, "
                "--run-folder)");
}

TEST(RunFolderTest, AFileOfItsNameIsNoFolder) {
  const test::TemporaryFolder temporary;
  const std::filesystem::path path = temporary.path() / "file";
  std::ofstream(path) << "content";
  EXPECT_EQ(error_text([&] { RunFolder::open(path); }),
            "[run folder] " + path.string() +
                ": does not exist, so there is no run to go on with; hint: start one without --resume");
  EXPECT_NE(error_text([&] { RunFolder::create(path); }).find("exists already"), std::string::npos);
}

TEST(RunFolderTest, NumbersAreFilled) {
  const test::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path() / "run";
  EXPECT_EQ(RunFolder::create_numbered(folder).paths().folder, folder);
  EXPECT_EQ(RunFolder::create_numbered(folder).paths().folder, temporary.path() / "run-2");
  EXPECT_EQ(RunFolder::create_numbered(folder).paths().folder, temporary.path() / "run-3");
}

TEST(RunFolderTest, TracesReplaceNone) {
  const test::TemporaryFolder temporary;
  const RunPaths paths{temporary.path()};
  for (const auto& [resumed_step, names] :
       {std::pair{0, std::vector{"trace.json", "trace-2.json", "trace-3.json"}},
        {120, {"trace-from-step-120.json", "trace-from-step-120-2.json"}}}) {
    for (const char* name : names) {
      const std::filesystem::path path = paths.free_trace(resumed_step);
      EXPECT_EQ(path, temporary.path() / name);
      test::write_plain_file(path, "{}");
    }
  }
}

TEST(RunFolderTest, OneProcessWritesAtATime) {
  const test::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path() / "run";
  {
    const RunFolder run = RunFolder::create(folder);
    EXPECT_EQ(error_text([&] { RunFolder::open(folder); }),
              "[run folder] " + folder.string() +
                  ": is being written by another process; hint: wait for it, or end it");
  }
  EXPECT_EQ(RunFolder::open(folder).paths().folder, folder);
}

}  // namespace
}  // namespace purine::train
