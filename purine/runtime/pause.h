// Waiting for some nanoseconds without giving up the core.
#pragma once

namespace purine {

/// Tells the processor that this thread spins.
inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace purine
