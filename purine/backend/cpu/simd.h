// Which vector instructions the loops of this folder are compiled for. Included before hwy/foreach_target.h.
#pragma once

// On x86 AVX-512 and AVX2; older processors take Highway's portable code. Every target that is left out saves
// the time to compile it.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
