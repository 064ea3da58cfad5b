#include "purine/io/file.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace purine::io {
namespace {

using test::error_text;
using test::TemporaryFolder;

TEST(FileTest, ReadsBackWhatWasAppended) {
  const TemporaryFolder folder;
  const std::string large(300'000, 'x');
  for (const std::string& text : {std::string("one\n"), std::string(), large}) {
    File file = File::open_to_append(folder / "log");
    file.write(bytes_of(text));
    file.close();
  }
  EXPECT_EQ(read_file(folder / "log"), "one\n" + large);
  EXPECT_EQ(File::open_to_read(folder / "log").size(), 4 + large.size());
}

TEST(FileTest, ReadsFilesOfUnknownSize) {
  const std::string status = read_file("/proc/self/status");  // its size is given as 0
  EXPECT_NE(status.find("Pid:"), std::string::npos);
}

TEST(FileTest, MakesNewFilesOnly) {
  const TemporaryFolder folder;
  EXPECT_TRUE(File::create_new(folder / "a").is_open());
  EXPECT_FALSE(File::create_new(folder / "a").is_open());
}

TEST(FileTest, ErrorsNameTheFileAndTheReason) {
  const TemporaryFolder folder;
  const std::string missing = folder / "missing";
  EXPECT_EQ(error_text([&] { read_file(missing); }),
            "[file] " + missing + ": cannot open: No such file or directory");
  EXPECT_EQ(error_text([&] { read_file(folder.path()); }),
            "[file] " + folder.path().string() + ": cannot read: Is a directory");
  EXPECT_EQ(error_text([&] { File::create_new(missing + "/a"); }),
            "[file] " + missing + "/a: cannot create: No such file or directory; hint: there is no folder " +
                missing);
  EXPECT_EQ(error_text([&] {
              File file = File::open_to_append("/dev/full");
              file.write(bytes_of("x"));
            }),
            "[file] /dev/full: cannot write: No space left on device");
}

TEST(FileTest, MakesFoldersOnceAndNotOverFiles) {
  const TemporaryFolder folder;
  make_folder(folder / "a/b/c");
  make_folder(folder / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  File::create_new(folder / "file").close();
  EXPECT_EQ(error_text([&] { make_folder(folder / "file"); }),
            "[file] " + (folder / "file").string() + ": cannot make the folder: Not a directory");
}

}  // namespace
}  // namespace purine::io
