#include "purine/backend/cpu/random_bits.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "purine/backend/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "purine/backend/cpu/random_bits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace purine::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

void bits_of(const Random& random, std::uint64_t first, std::uint64_t step, std::int64_t count,
             std::uint32_t* bits) {
  for (std::int64_t i = 0; i < count; ++i)
    bits[i] = random.bits(first + static_cast<std::uint64_t>(i) * step);
}

#else

using Tag = hn::ScalableTag<std::uint32_t>;
using Vector = hn::Vec<Tag>;

/// The upper halves of the products of all lanes.
HWY_INLINE Vector multiply_high(Vector a, Vector b) {
  const Tag d;
  const hn::RepartitionToWide<Tag> wide;
  const auto even = hn::ShiftRight<32>(hn::MulEven(a, b));
  const auto odd_a = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a)));
  const auto odd_b = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, b)));
  const auto odd = hn::MulEven(odd_a, odd_b);
  return hn::BitCast(d, hn::Or(even, hn::And(odd, hn::Set(wide, 0xffffffff00000000ULL))));
}

/// Philox 4x32 with 10 rounds, a block a lane, of which each lane takes one of the four results.
HWY_INLINE Vector lanes_of(const Random::State& state, const std::uint32_t* low, const std::uint32_t* high,
                           const std::uint32_t* which) {
  const Tag d;
  const auto first_factor = hn::Set(d, 0xd2511f53U);
  const auto second_factor = hn::Set(d, 0xcd9e8d57U);
  Vector c0 = hn::LoadU(d, low);
  Vector c1 = hn::LoadU(d, high);
  Vector c2 = hn::Set(d, state.high[0]);
  Vector c3 = hn::Set(d, state.high[1]);
  std::uint32_t key0 = state.key[0];
  std::uint32_t key1 = state.key[1];
  for (int round = 0; round < 10; ++round) {
    const Vector first_high = multiply_high(first_factor, c0);
    const Vector first_low = hn::Mul(first_factor, c0);
    const Vector second_high = multiply_high(second_factor, c2);
    const Vector second_low = hn::Mul(second_factor, c2);
    c0 = hn::Xor(hn::Xor(second_high, c1), hn::Set(d, key0));
    c1 = second_low;
    c2 = hn::Xor(hn::Xor(first_high, c3), hn::Set(d, key1));
    c3 = first_low;
    key0 += 0x9e3779b9U;
    key1 += 0xbb67ae85U;
  }
  const Vector choice = hn::LoadU(d, which);
  const auto is_odd = hn::Ne(hn::And(choice, hn::Set(d, 1U)), hn::Zero(d));
  const auto is_upper = hn::Ne(hn::And(choice, hn::Set(d, 2U)), hn::Zero(d));
  return hn::IfThenElse(is_upper, hn::IfThenElse(is_odd, c3, c2), hn::IfThenElse(is_odd, c1, c0));
}

void bits_of(const Random& random, std::uint64_t first, std::uint64_t step, std::int64_t count,
             std::uint32_t* bits) {
  const Random::State state = random.state();
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::array<std::uint32_t, hn::MaxLanes(Tag())> low{};
  std::array<std::uint32_t, hn::MaxLanes(Tag())> high{};
  std::array<std::uint32_t, hn::MaxLanes(Tag())> which{};
  std::array<std::uint32_t, hn::MaxLanes(Tag())> results{};
  for (std::int64_t at = 0; at < count; at += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::uint64_t element = first + static_cast<std::uint64_t>(at + lane) * step;
      const auto index = static_cast<std::size_t>(lane);
      low[index] = static_cast<std::uint32_t>(element >> 2);
      high[index] = static_cast<std::uint32_t>(element >> 34);
      which[index] = static_cast<std::uint32_t>(element & 3);
    }
    const Vector all = lanes_of(state, low.data(), high.data(), which.data());
    if (at + lanes <= count) {
      hn::StoreU(all, d, bits + at);
    } else {
      hn::StoreU(all, d, results.data());
      std::copy_n(results.data(), count - at, bits + at);
    }
  }
}

#endif

}  // namespace
}  // namespace purine::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace purine::cpu {

HWY_EXPORT(bits_of);

void random_bits(const Random& random, std::uint64_t first, std::uint64_t step, std::int64_t count,
                 std::uint32_t* bits) {
  HWY_DYNAMIC_DISPATCH(bits_of)(random, first, step, count, bits);
}

}  // namespace purine::cpu
#endif
