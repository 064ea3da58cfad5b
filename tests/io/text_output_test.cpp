#include "purine/io/text_output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <string>

#include "purine/io/file.h"
#include "tests/support/child_process.h"
#include "tests/support/temporary_folder.h"

namespace purine::io {
namespace {

using Stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

TEST(TextOutputTest, WritesAfterWhatTheStreamHolds) {
  const test::TemporaryFolder folder;
  const Stream stream(std::fopen((folder / "text").c_str(), "w"), &std::fclose);
  TextOutput output(stream.get());
  std::fputs("first, ", stream.get());
  output.write("second, ");
  EXPECT_EQ(read_file(folder / "text"), "first, second, ");
  std::fputs("third", stream.get());
  output.write("");
  EXPECT_EQ(read_file(folder / "text"), "first, second, third");
  EXPECT_EQ(output.error_number(), 0);
  EXPECT_FALSE(output.nobody_reads());
  EXPECT_EQ(output.columns(), 80) << "a file has none";
}

TEST(TextOutputTest, AReaderThatIsGoneIsNoError) {
  const std::string text = test::text_from_child([] {
    std::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    if (::pipe(ends) != 0) return std::string("no pipe");
    const Stream stream(::fdopen(ends[1], "w"), &std::fclose);
    TextOutput output(stream.get());
    output.write("read\n");
    ::close(ends[0]);
    for (int i = 0; i < 3; ++i) output.write("lost\n");
    if (output.error_number() != EPIPE || !output.nobody_reads()) return std::string("no EPIPE");
    return std::string(std::fflush(stream.get()) == 0 && std::ferror(stream.get()) == 0 ? "quiet" : "loud");
  });
  EXPECT_EQ(text, "quiet");
}

TEST(TextOutputTest, AFullDiskIsOne) {
  const Stream stream(std::fopen("/dev/full", "w"), &std::fclose);
  TextOutput output(stream.get());
  output.write("lost");
  EXPECT_EQ(output.error_number(), ENOSPC);
  EXPECT_FALSE(output.nobody_reads());
}

}  // namespace
}  // namespace purine::io
