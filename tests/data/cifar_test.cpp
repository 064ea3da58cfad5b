#include <gtest/gtest.h>

#include "purine/data/dataset.h"
#include "tests/data/image_files.h"
#include "tests/support/error_text.h"
#include "tests/support/plain_file.h"
#include "tests/support/temporary_folder.h"

namespace purine::data {
namespace {

using test::Bytes;
using test::error_text;
using test::TemporaryFolder;

// A record: labels, and planes whose values tell the sample, channel, row and column.
Bytes record(const Bytes& labels, int sample) {
  Bytes bytes = labels;
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < 1024; ++i) {
      bytes.push_back(static_cast<std::uint8_t>(sample * 50 + c * 17 + i / 32 * 5 + i % 32));
    }
  }
  return bytes;
}

void add_batch(const TemporaryFolder& folder, std::string_view name, const Bytes& bytes) {
  std::filesystem::create_directories((folder / name).parent_path());
  test::write_plain_file(folder / name, test::as_text(bytes));
}

void expect_sample(const Image& image, int sample) {
  ASSERT_EQ(image.height, 32);
  ASSERT_EQ(image.width, 32);
  ASSERT_EQ(image.channels, 3);
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      for (int c = 0; c < 3; ++c) {
        ASSERT_EQ(image.row(y)[3 * x + c], static_cast<std::uint8_t>(sample * 50 + c * 17 + y * 5 + x));
      }
    }
  }
}

TEST(CifarTest, ReadsTheFiveBatchesInOrder) {
  for (const std::string prefix : {"", "cifar-10-batches-bin/"}) {
    const TemporaryFolder folder;
    for (int i = 0; i < 5; ++i) {
      Bytes two = record({static_cast<std::uint8_t>(i)}, 2 * i);
      const Bytes second = record({9}, 2 * i + 1);
      two.insert(two.end(), second.begin(), second.end());
      add_batch(folder, prefix + "data_batch_" + std::to_string(i + 1) + ".bin", two);
    }
    add_batch(folder, prefix + "test_batch.bin", record({3}, 4));
    const DatasetPtr train = open_cifar10(folder.path().string(), Subset::train);
    ASSERT_EQ(train->size(), 10);
    for (std::int64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(train->label(i), i % 2 == 0 ? i / 2 : 9);
      expect_sample(train->read(i), static_cast<int>(i));
    }
    EXPECT_EQ(train->class_names()[9], "truck");
    EXPECT_EQ(train->sample_name(3), (folder / (prefix + "data_batch_2.bin[1]")).string());
    EXPECT_EQ(train->image_size()->channels, 3);
    const DatasetPtr test = open_cifar10(folder.path().string(), Subset::test);
    ASSERT_EQ(test->size(), 1);
    EXPECT_EQ(test->label(0), 3);
  }
}

TEST(CifarTest, ReadsFineAndCoarseLabels) {
  const TemporaryFolder folder;
  add_batch(folder, "train.bin", record({19, 77}, 1));
  const std::string path = folder.path().string();
  EXPECT_EQ(open_cifar100(path, Subset::train)->label(0), 77);
  EXPECT_EQ(open_cifar100(path, Subset::train)->class_names().size(), 100U);
  const DatasetPtr coarse = open_cifar100(path, Subset::train, CifarLabels::coarse);
  EXPECT_EQ(coarse->label(0), 19);
  EXPECT_EQ(coarse->class_names().size(), 20U);
  expect_sample(coarse->read(0), 1);
}

TEST(CifarTest, NamesComeFromTheFilesBeside) {
  const TemporaryFolder folder;
  add_batch(folder, "test_batch.bin", record({0}, 0));
  test::write_plain_file(folder / "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  EXPECT_EQ(open_cifar10(folder.path().string(), Subset::test)->class_names()[9], "j");
  test::write_plain_file(folder / "batches.meta.txt", "a\nb\n");
  EXPECT_EQ(error_text([&] { open_cifar10(folder.path().string(), Subset::test); }),
            "[cifar10] " + (folder / "batches.meta.txt").string() + ": has 2 lines, expected 10 class names");
}

TEST(CifarTest, WhatIsWrongIsSaidWithTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  EXPECT_EQ(error_text([&] { open_cifar10(path, Subset::train); }),
            "[cifar10] " + path + "/data_batch_1.bin: can't be read: No such file or directory");
  Bytes bytes = record({10}, 0);
  add_batch(folder, "test_batch.bin", bytes);
  EXPECT_EQ(error_text([&] { open_cifar10(path, Subset::test); }),
            "[cifar10] " + path + "/test_batch.bin[0]: label 10 is out of range: there are 10 classes");
  bytes.pop_back();
  add_batch(folder, "test_batch.bin", bytes);
  EXPECT_EQ(error_text([&] { open_cifar10(path, Subset::test); }),
            "[cifar10] " + path +
                "/test_batch.bin: has 3072 bytes, expected a multiple of 3073: 1 label byte and 32 x 32 x 3 "
                "values");
  add_batch(folder, "test.bin", {});
  EXPECT_EQ(error_text([&] { open_cifar100(path, Subset::test); }),
            "[cifar100] " + path +
                "/test.bin: has 0 bytes, expected a multiple of 3074: 2 label bytes and 32 x 32 x 3 values");
}

}  // namespace
}  // namespace purine::data
