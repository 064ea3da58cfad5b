// Times of traces are in nanoseconds.
#pragma once

#include <cstdint>

namespace purine::trace {

inline constexpr std::int64_t ms = 1'000'000;

}  // namespace purine::trace
