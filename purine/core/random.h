// Counter-based random numbers: a value is a function of (seed, stream, iteration, element) alone.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace purine {

/// A stable 64-bit hash of a text (FNV-1a with a final mix): stream numbers from paths, the same on every
/// host and in every run.
std::uint64_t hash_text(std::string_view text);

/// Random values for the elements of one tensor in one iteration: Philox 4x32 with 10 rounds (Salmon, Moraes,
/// Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Any element can be asked for in any
/// order by any thread: the answer is the same.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream, std::uint64_t iteration);

  /// 32 uniform bits for an element.
  std::uint32_t bits(std::uint64_t element) const;
  /// Four times 32 bits: those of elements 4 * block … 4 * block + 3.
  std::array<std::uint32_t, 4> block(std::uint64_t block) const;
  /// The uniform values of the elements of a block.
  std::array<float, 4> uniforms(std::uint64_t block) const;
  /// The standard normal values of the elements of a block.
  std::array<float, 4> normals(std::uint64_t block) const;
  /// Uniform in [0, 1), 24 bits.
  float uniform(std::uint64_t element) const;
  /// The same from the element's bits.
  static float uniform_of(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }
  /// Uniform integer in [0, bound), bound at most 2^32; the bias is below 2^-32.
  std::uint64_t below(std::uint64_t element, std::uint64_t bound) const;
  /// Standard normal (Box-Muller on a pair of neighbouring elements).
  float normal(std::uint64_t element) const;

  /// What the numbers are made from beside the element, for those who make many at a time.
  struct State {
    std::array<std::uint32_t, 2> key;
    std::array<std::uint32_t, 2>
        high;  ///< the upper half of the counter; the lower one is the block's number
  };
  State state() const { return {key_, high_}; }

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 2> high_;
};

}  // namespace purine
