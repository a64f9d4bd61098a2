#include "collectives/backend/native/undo_log.hpp"

#include <cstring>

#include "collectives/kernels/copy.hpp"

namespace elastic::collectives {

void UndoLog::begin(Buffer& storage, std::size_t bytes) {
  storage.resize(bytes);
  storage_ = &storage;
  // The copy is hardly ever read again, so a large one should not displace data in the cache.
  store_ = bytes >= kernels::kBeyondCacheBytes ? kernels::Store::kNonTemporal
                                               : kernels::Store::kTemporal;
  used_ = 0;
  saved_.clear();
}

void UndoLog::about_to(std::span<std::byte> memory) {
  if (memory.empty()) return;
  kernels::copy(reserve(memory), memory.data(), memory.size(), store_);
}

std::byte* UndoLog::reserve(std::span<std::byte> memory) {
  const MutexLock lock(mutex_);
  saved_.push_back(memory);
  std::byte* const at = storage_->data() + used_;
  used_ += memory.size();
  return at;
}

void UndoLog::restore() {
  // The latest first: if memory was saved twice, the first copy is the original content.
  for (; !saved_.empty(); saved_.pop_back()) {
    const std::span<std::byte> memory = saved_.back();
    used_ -= memory.size();
    std::memcpy(memory.data(), storage_->data() + used_, memory.size());
  }
}

}  // namespace elastic::collectives
