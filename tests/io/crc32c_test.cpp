#include "purine/io/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "purine/io/file.h"

namespace purine::io {
namespace {

std::string repeated(int byte) {
  return std::string(32, static_cast<char>(byte));
}

TEST(Crc32cTest, KnownVectors) {
  // RFC 3720, appendix B.4, and the check value of the catalogue of parametrised CRC algorithms.
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  const std::string descending(ascending.rbegin(), ascending.rend());
  EXPECT_EQ(crc32c(bytes_of(repeated(0))), 0x8a9136aaU);
  EXPECT_EQ(crc32c(bytes_of(repeated(0xff))), 0x62a8ab43U);
  EXPECT_EQ(crc32c(bytes_of(ascending)), 0x46dd794eU);
  EXPECT_EQ(crc32c(bytes_of(descending)), 0x113fdb5cU);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32cTest, TableInstructionAndPiecesAgree) {
  std::minstd_rand random(3);
  std::vector<std::byte> bytes(1000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xffU);
  for (std::size_t length = 0; length < bytes.size(); length += 1 + length / 8) {
    for (const std::size_t offset : {0, 1, 5}) {
      const std::span<const std::byte> part =
          std::span(bytes).subspan(offset).first(std::min(length, bytes.size() - offset));
      const std::uint32_t expected = ~internal::crc32c_by_table(0xffffffffU, part);
      EXPECT_EQ(crc32c(part), expected) << length;
      Crc32c pieces;
      pieces.update(part.first(part.size() / 3));
      pieces.update(part.subspan(part.size() / 3));
      EXPECT_EQ(pieces.value(), expected) << length;
    }
  }
}

}  // namespace
}  // namespace purine::io
