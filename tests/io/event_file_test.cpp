#include "purine/io/event_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <bit>
#include <csignal>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "purine/io/crc32c.h"
#include "tests/support/child_process.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace purine::io {
namespace {

using test::TemporaryFolder;

/// The records of an event file, their checksums verified; a record that is cut ends the list.
std::vector<std::string> records_of(std::string_view content) {
  std::vector<std::string> records;
  const auto number = [&]<typename T>(T value, std::size_t offset) {
    std::memcpy(&value, content.data() + offset, sizeof(value));
    return value;
  };
  const auto checksum_fits = [&](std::size_t offset, std::size_t length) {
    const std::uint32_t unmasked = number(std::uint32_t{0}, offset + length) - 0xa282ead8U;
    return std::rotl(unmasked, 15) == crc32c(bytes_of(content.substr(offset, length)));
  };
  while (content.size() >= 12) {
    const auto length = static_cast<std::size_t>(number(std::uint64_t{0}, 0));
    EXPECT_TRUE(checksum_fits(0, 8));
    if (content.size() < length + 16) break;
    EXPECT_TRUE(checksum_fits(12, length));
    records.emplace_back(content.substr(12, length));
    content.remove_prefix(length + 16);
  }
  return records;
}

TEST(EventFileTest, WritesTheBytesThatTensorBoardWrites) {
  const TemporaryFolder folder;
  EventFileWriter writer(folder / "run/events", {.resumed_step = 300, .time = 1700000000.25});
  const std::vector<Scalar> first{{"train/loss", 2.5F}};
  writer.write(0, first, 1700000001.25);
  const std::string tag = "genauigkeit \xc3\xa9 " + std::string(200, 'x');
  const std::vector<Scalar> second{{"train/loss", 0.0F}, {tag, std::numeric_limits<float>::quiet_NaN()}};
  writer.write(std::int64_t{1} << 40, second, 1700000002.25);
  writer.flush();
  EXPECT_EQ(read_file(writer.path()), read_file("tests/io/golden/scalars.tfevents"));
  EXPECT_EQ(writer.path().filename().string().find("events.out.tfevents.1700000000."), 0U);
  EXPECT_EQ(records_of(read_file(writer.path())).size(), 4U);
}

TEST(EventFileTest, EveryWriterHasAFileOfItsOwn) {
  const TemporaryFolder folder;
  EventFileWriter first(folder.path(), {.time = 1.0});
  EventFileWriter second(folder.path(), {.time = 1.0});
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(records_of(read_file(first.path())), records_of(read_file(second.path())));
  EXPECT_EQ(records_of(read_file(first.path())).size(), 1U);  // the version is there from the beginning
}

TEST(EventFileTest, FlushesByItselfAndAtTheEnd) {
  const TemporaryFolder folder;
  std::filesystem::path path;
  {
    EventFileWriter writer(folder.path());
    path = writer.path();
    const std::vector<Scalar> scalars{{"loss", 1.0F}};
    writer.write(1, scalars);
    EXPECT_EQ(records_of(read_file(path)).size(), 1U);
    for (int step = 2; step <= 3000; ++step) writer.write(step, scalars);
    EXPECT_GT(records_of(read_file(path)).size(), 1000U);
    EventFileWriter moved = std::move(writer);
  }
  EXPECT_EQ(records_of(read_file(path)).size(), 3001U);
}

TEST(EventFileTest, AFullDiskLeavesWholeRecords) {
  const TemporaryFolder folder;
  const std::string text = test::text_from_child([&]() -> std::string {
    const rlimit limit{1000, 1000};
    std::signal(SIGXFSZ, SIG_IGN);
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit could be set";
    EventFileWriter writer(folder.path());
    const std::vector<Scalar> scalars{{"loss", 1.0F}};
    for (int step = 1;; ++step) {
      writer.write(step, scalars);
      writer.flush();
    }
  });
  EXPECT_TRUE(text.ends_with(": cannot write: File too large")) << text;
  const std::filesystem::path path = std::filesystem::directory_iterator(folder.path())->path();
  EXPECT_EQ(text.find("[file] " + path.string()), 0U) << text;
  const std::string content = read_file(path);
  std::size_t bytes = 0;
  for (const std::string& record : records_of(content)) bytes += record.size() + 16;
  EXPECT_EQ(bytes, content.size());
  EXPECT_GT(bytes, 900U);
}

}  // namespace
}  // namespace purine::io
