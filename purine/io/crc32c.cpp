#include "purine/io/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace purine::io {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// tables[k][b]: the effect of byte b when k zero bytes follow it (slicing by 8: Kounavis and Berry, 2005).
constexpr Tables make_tables() {
  constexpr std::uint32_t reflected_polynomial = 0x82f63b78U;
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1U) != 0 ? reflected_polynomial : 0U);
    tables[0][byte] = state;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}

constexpr Tables tables = make_tables();

std::uint64_t load_word(const std::byte* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::uint32_t state,
                                                                      std::span<const std::byte> bytes) {
  std::uint64_t wide = state;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) wide = _mm_crc32_u64(wide, load_word(bytes.data() + i));
  auto narrow = static_cast<std::uint32_t>(wide);
  for (; i < bytes.size(); ++i) narrow = _mm_crc32_u8(narrow, std::to_integer<std::uint8_t>(bytes[i]));
  return narrow;
}
#endif

}  // namespace

namespace internal {

std::uint32_t crc32c_by_table(std::uint32_t state, std::span<const std::byte> bytes) {
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    const std::uint64_t word = load_word(bytes.data() + i) ^ state;
    state = 0;
    for (std::size_t k = 0; k < 8; ++k) state ^= tables[7 - k][(word >> (8 * k)) & 0xffU];
  }
  for (; i < bytes.size(); ++i) {
    state = (state >> 8) ^ tables[0][(state ^ std::to_integer<std::uint32_t>(bytes[i])) & 0xffU];
  }
  return state;
}

}  // namespace internal

void Crc32c::update(std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) {
    state_ = crc32c_by_instruction(state_, bytes);
    return;
  }
#endif
  state_ = internal::crc32c_by_table(state_, bytes);
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  Crc32c checksum;
  checksum.update(bytes);
  return checksum.value();
}

}  // namespace purine::io
