#pragma once

namespace elastic::transport {

/// Tells the processor that a loop waits for another core.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace elastic::transport
