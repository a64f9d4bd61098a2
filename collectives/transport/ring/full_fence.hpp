#pragma once

#include <atomic>

namespace elastic::transport {

/// All reads and writes before come before all those after. ThreadSanitizer does not know fences:
/// under it, the accesses beside the fence must suffice.
inline void full_fence() {
#if !defined(__SANITIZE_THREAD__)
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace elastic::transport
