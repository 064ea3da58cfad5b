#include "purine/core/random.h"

#include <cmath>
#include <numbers>

namespace purine {
namespace {

std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ULL;
  value ^= value >> 33;
  return value;
}

}  // namespace

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return mix(hash);
}

Random::Random(std::uint64_t seed, std::uint64_t stream, std::uint64_t iteration) {
  const std::uint64_t key = mix(seed ^ mix(stream + 0x9e3779b97f4a7c15ULL));
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
  high_ = {static_cast<std::uint32_t>(iteration), static_cast<std::uint32_t>(iteration >> 32)};
}

std::array<std::uint32_t, 4> Random::block(std::uint64_t block) const {
  std::array<std::uint32_t, 4> counter = {static_cast<std::uint32_t>(block),
                                          static_cast<std::uint32_t>(block >> 32), high_[0], high_[1]};
  std::array<std::uint32_t, 2> key = key_;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xd2511f53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xcd9e8d57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
        static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  return counter;
}

std::uint32_t Random::bits(std::uint64_t element) const {
  return block(element / 4)[element % 4];
}

std::array<float, 4> Random::uniforms(std::uint64_t block) const {
  const std::array<std::uint32_t, 4> four = this->block(block);
  std::array<float, 4> values;
  for (std::size_t i = 0; i < 4; ++i) values[i] = uniform_of(four[i]);
  return values;
}

std::array<float, 4> Random::normals(std::uint64_t block) const {
  const std::array<float, 4> uniform = uniforms(block);
  std::array<float, 4> values;
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    // 1 - u lies in (0, 1], so the logarithm is finite.
    const float radius = std::sqrt(-2.0F * std::log(1.0F - uniform[pair]));
    const float angle = 2.0F * std::numbers::pi_v<float> * uniform[pair + 1];
    values[pair] = radius * std::cos(angle);
    values[pair + 1] = radius * std::sin(angle);
  }
  return values;
}

float Random::uniform(std::uint64_t element) const {
  return uniforms(element / 4)[element % 4];
}

std::uint64_t Random::below(std::uint64_t element, std::uint64_t bound) const {
  return (std::uint64_t{bits(element)} * bound) >> 32;
}

float Random::normal(std::uint64_t element) const {
  return normals(element / 4)[element % 4];
}

}  // namespace purine
