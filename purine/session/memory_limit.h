// How much memory the machine can give.
#pragma once

#include <cstddef>

namespace purine {

/// Bytes that this process can still take: what the system has available, or what is left below its control
/// group's limit if that is less. The largest number if neither can be found out.
std::size_t available_memory();

/// Throws Error if a program needs more than that: now, before the first step, instead of being killed in it.
void check_memory(std::size_t needed);

}  // namespace purine
