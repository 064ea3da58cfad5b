#include "purine/io/record_file.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/child_process.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace purine::io {
namespace {

using test::error_text;
using test::TemporaryFolder;

TEST(RecordFileTest, WritesWhatWasHeldOnceThereIsRoom) {
  const TemporaryFolder folder;
  const std::string path = folder / "records";
  const std::string text = test::text_from_child([&]() -> std::string {
    RecordFile file(File::create_new(path));
    file.add("one\n");
    file.flush();
    test::limit_files(6);
    file.add("two\n");
    const std::string error = error_text([&] { file.flush(); });
    if (read_file(path) != "one\n") return "a part was written";
    if (file.is_whole() || file.held() != 4) return "nothing is held";
    file.add("three\n");
    if (error_text([&] { file.sync(); }) != error) return "a second flush says something else";
    test::limit_files(RLIM_INFINITY);
    file.sync();
    if (!file.is_whole() || file.held() != 0) return "something is held";
    return error;
  });
  EXPECT_EQ(text, "[file] " + path + ": cannot write: File too large");
  EXPECT_EQ(read_file(path), "one\ntwo\nthree\n");
}

TEST(RecordFileTest, HoldsNoMoreThanItsLimit) {
  const TemporaryFolder folder;
  const std::string path = folder / "records";
  const std::string text = test::text_from_child([&]() -> std::string {
    RecordFile file(File::create_new(path));
    test::limit_files(6);
    file.add(std::string(RecordFile::most_held, 'x'));
    error_text([&] { file.flush(); });
    if (file.held() != RecordFile::most_held) return "it is lost before it is too much";
    file.add("y");
    error_text([&] { file.flush(); });
    if (file.held() != 0 || file.is_whole()) return "it is held";
    file.add("z\n");
    file.flush();
    return file.is_whole() ? "it is said to be whole" : "as expected";
  });
  EXPECT_EQ(text, "as expected");
  EXPECT_EQ(read_file(path), "z\n");
}

}  // namespace
}  // namespace purine::io
