#include "purine/io/atomic_file.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <string>
#include <thread>

#include "tests/support/child_process.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace purine::io {
namespace {

using test::ChildProcess;
using test::error_text;
using test::TemporaryFolder;
using test::text_from_child;

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(AtomicFileTest, ReplacesTheContentAtCommit) {
  const TemporaryFolder folder;
  write_file(folder / "a", "older");
  AtomicFile file(folder / "a");
  file.write("new");
  file.write(std::string(1'000'000, 'x'));
  file.write("er");
  EXPECT_EQ(read_file(folder / "a"), "older");
  file.commit();
  EXPECT_EQ(read_file(folder / "a"), "new" + std::string(1'000'000, 'x') + "er");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFileTest, WithoutCommitNothingHappens) {
  const TemporaryFolder folder;
  write_file(folder / "a", "older");
  {
    AtomicFile file(folder / "a");
    file.write("newer");
    EXPECT_EQ(files_in(folder.path()), 2U);
  }
  EXPECT_EQ(read_file(folder / "a"), "older");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFileTest, SeveralWritersOfOnePathDontMeet) {
  const TemporaryFolder folder;
  AtomicFile first(folder / "a");
  AtomicFile second(folder / "a");
  first.write("first");
  second.write("second");
  second.commit();
  EXPECT_EQ(read_file(folder / "a"), "second");
  first.commit();
  EXPECT_EQ(read_file(folder / "a"), "first");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFileTest, WritesBehindALink) {
  const TemporaryFolder folder;
  make_folder(folder / "real");
  write_file(folder / "real/a", "older");
  std::filesystem::create_symlink(folder / "real/a", folder / "link");
  write_file(folder / "link", "newer");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "real/a"), "newer");
}

TEST(AtomicFileTest, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  for (const std::string& path : {std::string("/dev/null"), folder.path().string()}) {
    EXPECT_EQ(error_text([&] { write_file(path, "x"); }),
              "[file] " + path +
                  ": is not a regular file, so it cannot be replaced; hint: write to a path that is free or "
                  "that names an ordinary file");
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(AtomicFileTest, RefusesAFolderThatDoesNotExist) {
  const TemporaryFolder folder;
  const std::string path = folder / "missing/a";
  EXPECT_EQ(error_text([&] { write_file(path, "x"); }),
            "[file] " + path + ": cannot create: No such file or directory; hint: there is no folder " +
                (folder / "missing").string());
}

TEST(AtomicFileTest, WithoutPermissionTheOlderFileStays) {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  write_file(path, "older");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  const std::string text = text_from_child([&]() -> std::string {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return "cannot give up the rights of root";
    write_file(path, "newer");
    return "written";
  });
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  EXPECT_EQ(text, "[file] " + path + ": cannot create: Permission denied");
  EXPECT_EQ(read_file(path), "older");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFileTest, OnAFullDiskTheOlderFileStays) {
  // The disk is a small one of the child's own, where the system lets it mount one; else a limit on the size
  // of files, which fails the same system call at the same place.
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  const std::string text = text_from_child([&]() -> std::string {
    const int spaces = ::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
    const bool mounted = ::unshare(spaces) == 0 &&
                         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=1m") == 0;
    if (!mounted) {
      const rlimit limit{1'000'000, 1'000'000};
      std::signal(SIGXFSZ, SIG_IGN);
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit could be set";
    }
    const std::string reason = mounted ? "No space left on device" : "File too large";
    write_file(path, "older");
    const std::string error = error_text([&] { write_file(path, std::string(2'000'000, 'x')); });
    if (error != "[file] " + path + ": cannot write: " + reason) return "the error says: " + error;
    if (read_file(path) != "older") return "the older file has changed";
    if (files_in(folder.path()) != 1) return "the temporary file is still there";
    write_file(path, std::string(900'000, 'y'));  // so the space of the failed one is free again
    return "as expected";
  });
  EXPECT_EQ(text, "as expected");
}

TEST(AtomicFileTest, AKillAtAnyMomentLeavesAWholeFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  write_file(path, "a");
  const auto size_for = [](char letter) { return letter == 'a' ? std::size_t{1} : 20'000U * (letter - 'a'); };
  std::minstd_rand random(1);
  std::size_t contents_seen = 0;
  std::string before = "a";
  for (int round = 0; round < 40; ++round) {
    ChildProcess writer([&] {
      for (int i = 1;; ++i) {
        const char letter = static_cast<char>('a' + (round + i) % 26);
        AtomicFile file(path);
        const std::size_t size = size_for(letter);
        for (std::size_t written = 0; written < size; written += 1000) {
          file.write(std::string(std::min<std::size_t>(1000, size - written), letter));
        }
        file.commit();
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 10'000));
    writer.kill();
    const std::string content = read_file(path);
    ASSERT_FALSE(content.empty());
    ASSERT_EQ(content, std::string(size_for(content[0]), content[0]));
    contents_seen += content != before ? 1 : 0;
    before = content;
    ASSERT_LE(files_in(folder.path()), 2U);
    remove_leftovers(folder.path());
    ASSERT_EQ(files_in(folder.path()), 1U);
  }
  EXPECT_GT(contents_seen, 0U);
}

TEST(AtomicFileTest, LeftoversOfDeadWritersGoAndLivingOnesStay) {
  const TemporaryFolder folder;
  write_file(folder / "a.tmp", "mine");
  text_from_child([&]() -> std::string {
    AtomicFile dead(folder / "b");
    dead.write("half");
    ::_exit(0);  // without the destructor, as if killed
  });
  AtomicFile living(folder / "c");
  EXPECT_EQ(files_in(folder.path()), 3U);
  EXPECT_EQ(remove_leftovers(folder.path()), 1U);
  EXPECT_EQ(files_in(folder.path()), 2U);
  living.write("whole");
  living.commit();
  EXPECT_EQ(read_file(folder / "c"), "whole");
  EXPECT_EQ(read_file(folder / "a.tmp"), "mine");
}

}  // namespace
}  // namespace purine::io
