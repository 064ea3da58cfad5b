// Which vector instructions the loops of this folder are compiled for. Included before hwy/foreach_target.h.
#pragma once

// On x86 AVX-512 and AVX2; older processors take Highway's portable code. Every target that is left out saves
// the time to compile it.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)

/// Before a loop: no iteration depends on another, so that it vectorises without checks for overlapping
/// arrays, which would send in-place use to a scalar copy of the loop.
#if defined(__clang__)
#define PURINE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PURINE_INDEPENDENT _Pragma("GCC ivdep")
#endif
