// Random bits of many elements, by the processor's vector instructions.
#pragma once

#include <cstdint>

#include "purine/core/random.h"

namespace purine::cpu {

/// bits[i] = random.bits(first + i * step) for i = 0 … count - 1.
void random_bits(const Random& random, std::uint64_t first, std::uint64_t step, std::int64_t count,
                 std::uint32_t* bits);

}  // namespace purine::cpu
