#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <numeric>

#include "purine/data/dataset.h"
#include "tests/data/image_files.h"
#include "tests/support/error_text.h"
#include "tests/support/plain_file.h"
#include "tests/support/temporary_folder.h"

namespace purine::data {
namespace {

using test::as_text;
using test::Bytes;
using test::error_text;
using test::TemporaryFolder;
using test::write_plain_file;

void append_number(Bytes& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

// Images of 2 x 3 whose values count up from 0.
Bytes images_file(std::uint32_t count) {
  Bytes bytes;
  for (const std::uint32_t number : {0x803U, count, 2U, 3U}) append_number(bytes, number);
  for (std::uint32_t i = 0; i < count * 6; ++i) bytes.push_back(static_cast<std::uint8_t>(i));
  return bytes;
}

Bytes labels_file(const Bytes& labels) {
  Bytes bytes;
  append_number(bytes, 0x801);
  append_number(bytes, static_cast<std::uint32_t>(labels.size()));
  bytes.insert(bytes.end(), labels.begin(), labels.end());
  return bytes;
}

void write_in(const TemporaryFolder& folder, std::string_view name, const Bytes& bytes) {
  write_plain_file(folder / name, as_text(bytes));
}

Bytes gzip(const Bytes& bytes) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

void expect_four_images(const Dataset& dataset) {
  ASSERT_EQ(dataset.size(), 4);
  const std::vector<std::int64_t> labels = {2, 0, 1, 2};
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(dataset.label(i), labels[static_cast<std::size_t>(i)]);
    const Image image = dataset.read(i);
    EXPECT_EQ(image.height, 2);
    EXPECT_EQ(image.width, 3);
    EXPECT_EQ(image.channels, 1);
    Bytes expected(6);
    std::iota(expected.begin(), expected.end(), static_cast<std::uint8_t>(6 * i));
    EXPECT_EQ(image.pixels, expected);
  }
}

TEST(IdxTest, ReadsPlainAndCompressedFilesUnderTheirUsualNames) {
  const Bytes images = images_file(4);
  const Bytes labels = labels_file({2, 0, 1, 2});
  const std::vector<std::pair<const char*, const char*>> names = {
      {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
      {"train-images.idx3-ubyte", "train-labels.idx1-ubyte"},
      {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"},
      {"emnist-letters-train-images-idx3-ubyte.gz", "emnist-letters-train-labels-idx1-ubyte"}};
  std::uint64_t fingerprint = 0;
  for (const auto& [image_name, label_name] : names) {
    const TemporaryFolder folder;
    write_in(folder, image_name, std::string_view(image_name).ends_with(".gz") ? gzip(images) : images);
    write_in(folder, label_name, std::string_view(label_name).ends_with(".gz") ? gzip(labels) : labels);
    const DatasetPtr dataset = open_idx(folder.path().string(), Subset::train);
    expect_four_images(*dataset);
    EXPECT_EQ(dataset->class_names(), (std::vector<std::string>{"0", "1", "2"}));
    EXPECT_EQ(dataset->sample_name(3), (folder / image_name).string() + "[3]");
    EXPECT_FALSE(dataset->encoded());
    if (fingerprint == 0) fingerprint = dataset->fingerprint();
    EXPECT_EQ(dataset->fingerprint(), fingerprint);
  }
}

TEST(IdxTest, TheTestSetIsT10kOrTest) {
  for (const char* part : {"t10k", "test"}) {
    const TemporaryFolder folder;
    write_in(folder, std::string(part) + "-images-idx3-ubyte", images_file(2));
    write_in(folder, std::string(part) + "-labels-idx1-ubyte", labels_file({0, 1}));
    EXPECT_EQ(open_idx(folder.path().string(), Subset::test)->size(), 2);
    EXPECT_EQ(error_text([&] { open_idx(folder.path().string(), Subset::train); }),
              "[idx] " + folder.path().string() + ": has no file train-images-idx3-ubyte (or .gz)");
  }
}

TEST(IdxTest, ClassesHaveTheNamesOfAFileOrCoverBothSubsets) {
  const TemporaryFolder folder;
  write_in(folder, "t10k-images-idx3-ubyte", images_file(2));
  write_in(folder, "t10k-labels-idx1-ubyte", labels_file({0, 1}));
  write_in(folder, "train-labels-idx1-ubyte.gz", gzip(labels_file({0, 3})));
  EXPECT_EQ(open_idx(folder.path().string(), Subset::test)->class_names().size(), 4U);
  write_plain_file(folder / "classes.txt", "shirt\r\nankle boot\n\n");
  EXPECT_EQ(open_idx(folder.path().string(), Subset::test)->class_names(),
            (std::vector<std::string>{"shirt", "ankle boot"}));
  write_plain_file(folder / "classes.txt", "shirt\n");
  EXPECT_EQ(error_text([&] { open_idx(folder.path().string(), Subset::test); }),
            "[idx] " + (folder / "t10k-images-idx3-ubyte").string() +
                "[1]: label 1 is out of range: there are 1 classes");
}

TEST(IdxTest, WhatIsWrongIsSaidWithTheFile) {
  const auto error_with = [](const Bytes& images, const Bytes& labels, std::string_view image_name) {
    const TemporaryFolder folder;
    write_in(folder, image_name, images);
    write_in(folder, "train-labels-idx1-ubyte", labels);
    std::string text = error_text([&] { open_idx(folder.path().string(), Subset::train); });
    const std::size_t at = text.find(folder.path().string());
    return at == std::string::npos ? text : text.replace(at, folder.path().string().size(), "DIR");
  };
  const std::string name = "train-images-idx3-ubyte";
  const Bytes labels = labels_file({2, 0, 1, 2});

  Bytes wrong_magic = images_file(4);
  wrong_magic[3] = 4;
  EXPECT_EQ(
      error_with(wrong_magic, labels, name),
      "[idx] DIR/train-images-idx3-ubyte: begins with 0x00000804, expected 0x00000803: unsigned bytes in 3 "
      "dimensions");
  Bytes short_file = images_file(4);
  short_file.pop_back();
  EXPECT_EQ(
      error_with(short_file, labels, name),
      "[idx] DIR/train-images-idx3-ubyte: is cut short: expected 24 bytes behind the header (4 x 2 x 3), got "
      "23");
  Bytes long_file = images_file(4);
  long_file.push_back(0);
  EXPECT_EQ(error_with(long_file, labels, name),
            "[idx] DIR/train-images-idx3-ubyte: is longer than expected");
  EXPECT_EQ(error_with({0, 0, 8, 3, 0}, labels, name),
            "[idx] DIR/train-images-idx3-ubyte: the file ends within its header");
  EXPECT_EQ(error_with(images_file(0), labels, name),
            "[idx] DIR/train-images-idx3-ubyte: its header says that dimension 0 has extent 0");
  Bytes huge = images_file(4);
  huge[4] = huge[8] = huge[12] = 0x7f;
  EXPECT_EQ(error_with(huge, labels, name),
            "[idx] DIR/train-images-idx3-ubyte: its header says that dimension 1 has extent 2130706434");
  EXPECT_EQ(
      error_with(images_file(3), labels, name),
      "[idx] DIR/train-labels-idx1-ubyte: has 4 labels, expected 3: as many as train-images-idx3-ubyte has "
      "images");
  EXPECT_EQ(
      error_with(images_file(4), images_file(4), name),
      "[idx] DIR/train-labels-idx1-ubyte: begins with 0x00000803, expected 0x00000801: unsigned bytes in 1 "
      "dimension");

  Bytes packed = gzip(images_file(40));
  const std::string packed_name = name + ".gz";
  Bytes cut(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(packed.size() - 20));
  EXPECT_NE(error_with(cut, labels, packed_name).find("is cut short: expected 240 bytes"), std::string::npos);
  Bytes damaged = packed;
  damaged[damaged.size() - 6] ^= 0xff;  // its checksum
  EXPECT_EQ(error_with(damaged, labels, packed_name),
            "[idx] DIR/train-images-idx3-ubyte.gz: damaged gzip data: incorrect data check");
}

TEST(IdxTest, APipeIsNotWaitedFor) {
  const TemporaryFolder folder;
  write_in(folder, "train-images-idx3-ubyte", images_file(1));
  const std::string labels = (folder / "train-labels-idx1-ubyte").string();
  ASSERT_EQ(::mkfifo(labels.c_str(), 0600), 0);
  EXPECT_EQ(error_text([&] { open_idx(folder.path().string(), Subset::train); }),
            "[idx] " + labels + ": is not a regular file");
}

TEST(IdxTest, MissingAndAmbiguousFilesAreNamed) {
  const TemporaryFolder folder;
  EXPECT_EQ(
      error_text([&] { open_idx((folder / "nowhere").string(), Subset::train); }),
      "[idx] " + (folder / "nowhere").string() + ": the folder can't be read: No such file or directory");
  write_in(folder, "a-train-images-idx3-ubyte", images_file(1));
  EXPECT_EQ(error_text([&] { open_idx(folder.path().string(), Subset::train); }),
            "[idx] " + folder.path().string() +
                ": has a-train-images-idx3-ubyte but no file a-train-labels-idx1-ubyte (or .gz)");
  write_in(folder, "b-train-images-idx3-ubyte", images_file(1));
  EXPECT_EQ(
      error_text([&] { open_idx(folder.path().string(), Subset::train); }),
      "[idx] " + folder.path().string() +
          ": has images of several sets: a-train-images-idx3-ubyte, b-train-images-idx3-ubyte; hint: give "
          "each set a folder of its own");
}

// Truncated anywhere and with random damage: an Error or a set, never anything else.
TEST(IdxTest, DamagedFilesAreErrors) {
  const TemporaryFolder folder;
  write_in(folder, "train-labels-idx1-ubyte", labels_file({2, 0, 1, 2}));
  for (const bool compressed : {false, true}) {
    const Bytes whole = compressed ? gzip(images_file(4)) : images_file(4);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      write_in(folder, "train-images-idx3-ubyte",
               Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
      EXPECT_NE(error_text([&] { open_idx(folder.path().string(), Subset::train); }).find("[idx] "),
                std::string::npos)
          << size;
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      Bytes flipped = whole;
      flipped[i] ^= static_cast<std::uint8_t>(1U << (i % 8));
      write_in(folder, "train-images-idx3-ubyte", flipped);
      try {
        EXPECT_EQ(open_idx(folder.path().string(), Subset::train)->size(), 4);
      } catch (const Error& error) {
        EXPECT_EQ(error.component(), "idx") << error.what();
      }
    }
  }
}

TEST(IdxTest, ReadsFashionMnist) {
  const std::string folder = "/usr/share/datasets/fashion-mnist";
  const DatasetPtr train = open_idx(folder, Subset::train);
  EXPECT_EQ(train->size(), 60000);
  EXPECT_EQ(train->class_names().size(), 10U);
  const DatasetPtr test = open_idx(folder, Subset::test);
  EXPECT_EQ(test->size(), 10000);
  std::vector<int> counts(10);
  for (std::int64_t i = 0; i < 10000; ++i) ++counts[static_cast<std::size_t>(test->label(i))];
  EXPECT_EQ(counts, std::vector<int>(10, 1000));
  EXPECT_EQ(train->label(0), 9) << "the first image is an ankle boot";
}

}  // namespace
}  // namespace purine::data
