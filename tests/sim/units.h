// Virtual time is in nanoseconds.
#pragma once

#include <cstdint>

namespace purine::sim {

inline constexpr std::int64_t us = 1000;

}  // namespace purine::sim
