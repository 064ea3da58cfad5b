// Which vector instructions the loops of this folder are compiled for. Included before hwy/foreach_target.h.
#pragma once

// Of those that Highway knows: processors without SSE4 take its portable code. Every target left out saves
// the time to compile it.
#define HWY_DISABLED_TARGETS HWY_SSSE3
