// The checksum CRC-32C.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace purine::io {

/// CRC-32C (Castagnoli's polynomial 0x1EDC6F41, reflected; RFC 3720, appendix B.4) of bytes given in pieces:
/// the checksum of checkpoints and event files. Uses the processor's instruction where there is one.
class Crc32c {
 public:
  void update(std::span<const std::byte> bytes);
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = 0xffffffffU;
};

/// CRC-32C of all bytes.
std::uint32_t crc32c(std::span<const std::byte> bytes);

namespace internal {
/// The same without the processor's instruction: continues from a state.
std::uint32_t crc32c_by_table(std::uint32_t state, std::span<const std::byte> bytes);
}  // namespace internal

}  // namespace purine::io
