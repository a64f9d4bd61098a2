#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/mutex.hpp"

namespace elastic::collectives::nccl {

/// A lack of device memory: from a request that fails until one for at least as many bytes
/// succeeds.
///
/// Any thread.
class MemoryShortage {
 public:
  /// Notes a request that has failed.
  /// \returns whether this begins a shortage.
  bool begin(std::size_t bytes) {
    const MutexLock lock(mutex_);
    return std::exchange(most_, std::max(most_, bytes)) == 0;
  }
  /// Notes a request that has succeeded.
  void end(std::size_t bytes) {
    const MutexLock lock(mutex_);
    if (bytes >= most_) most_ = 0;
  }

 private:
  Mutex mutex_;
  std::size_t most_ ELASTIC_GUARDED_BY(mutex_) = 0;  // bytes that were lacking; 0: no shortage
};

}  // namespace elastic::collectives::nccl
