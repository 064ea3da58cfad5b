#include "purine/data/exif.h"

#include <cstdint>
#include <optional>

namespace purine::data {
namespace {

// Numbers of a TIFF block in its byte order; those beyond its end are none.
class TiffReader {
 public:
  TiffReader(std::span<const std::byte> bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  std::optional<std::uint32_t> number(std::size_t offset, std::size_t size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t from = big_endian_ ? offset + i : offset + size - 1 - i;
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[from]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_endian_;
};

constexpr std::uint32_t orientation_tag = 0x0112;
constexpr std::uint32_t type_short = 3;
constexpr std::uint32_t type_long = 4;
constexpr std::size_t entry_bytes = 12;

}  // namespace

int exif_orientation(std::span<const std::byte> tiff) {
  if (tiff.size() < 8 || tiff[0] != tiff[1]) return 1;
  const bool big_endian = tiff[0] == std::byte{'M'};
  if (!big_endian && tiff[0] != std::byte{'I'}) return 1;
  const TiffReader reader(tiff, big_endian);
  if (reader.number(2, 2) != 42U) return 1;
  const std::size_t directory = reader.number(4, 4).value_or(0);
  const std::optional<std::uint32_t> entries = reader.number(directory, 2);
  if (!entries) return 1;
  for (std::size_t i = 0; i < *entries; ++i) {
    const std::size_t entry = directory + 2 + i * entry_bytes;
    const std::optional<std::uint32_t> tag = reader.number(entry, 2);
    if (!tag) return 1;
    if (*tag != orientation_tag) continue;
    const std::optional<std::uint32_t> type = reader.number(entry + 2, 2);
    if (reader.number(entry + 4, 4) != 1U || (type != type_short && type != type_long)) return 1;
    const std::uint32_t value = reader.number(entry + 8, type == type_short ? 2 : 4).value_or(1);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace purine::data
