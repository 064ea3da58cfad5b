#include "purine/data/exif.h"

#include <gtest/gtest.h>

#include "purine/core/random.h"
#include "tests/data/image_files.h"

namespace purine::data {
namespace {

using test::Bytes;
using test::exif_segment;

int orientation_of(const Bytes& segment) {
  return exif_orientation(test::as_bytes(segment).subspan(6));
}

TEST(ExifTest, ReadsTheOrientationInBothByteOrders) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(orientation_of(exif_segment(orientation, false)), orientation);
    EXPECT_EQ(orientation_of(exif_segment(orientation, true)), orientation);
  }
}

TEST(ExifTest, WhatIsNoOrientationIsUpright) {
  for (const int value : {0, 9, 255, 65535}) EXPECT_EQ(orientation_of(exif_segment(value)), 1);
  Bytes other_magic = exif_segment(6);
  other_magic[8] = 43;
  EXPECT_EQ(orientation_of(other_magic), 1);
  Bytes mixed_order = exif_segment(6);
  mixed_order[6] = 'M';
  EXPECT_EQ(orientation_of(mixed_order), 1);
  Bytes text_type = exif_segment(6);
  text_type[6 + 8 + 2 + 12 + 2] = 2;  // the second entry's type
  EXPECT_EQ(orientation_of(text_type), 1);
  Bytes two_values = exif_segment(6);
  two_values[6 + 8 + 2 + 12 + 4] = 2;
  EXPECT_EQ(orientation_of(two_values), 1);
  Bytes far_directory = exif_segment(6);
  far_directory[6 + 7] = 0xff;
  EXPECT_EQ(orientation_of(far_directory), 1);
  EXPECT_EQ(exif_orientation({}), 1);
}

TEST(ExifTest, CutAnywhereItEitherSaysSoOrIsUpright) {
  const Bytes whole = exif_segment(6);
  const std::size_t value_end = 6 + 8 + 2 + 12 + 10;
  for (std::size_t size = 6; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(orientation_of(cut), size >= value_end ? 6 : 1) << size;
  }
}

TEST(ExifTest, RandomBytesAreReadWithinTheirBounds) {
  for (std::uint64_t round = 0; round < 2000; ++round) {
    const Random random(3, 4, round);
    Bytes bytes = exif_segment(6, round % 2 == 0);
    for (std::uint64_t i = 0; i < 6; ++i) {
      bytes[6 + random.below(2 * i, bytes.size() - 6)] = static_cast<std::uint8_t>(random.bits(2 * i + 1));
    }
    const int orientation = orientation_of(bytes);
    EXPECT_TRUE(orientation >= 1 && orientation <= 8) << orientation;
  }
}

}  // namespace
}  // namespace purine::data
