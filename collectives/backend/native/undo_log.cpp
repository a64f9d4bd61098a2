#include "collectives/backend/native/undo_log.hpp"

#include <cstring>

#include "collectives/kernels/copy.hpp"

namespace elastic::collectives {

void UndoLog::begin(Buffer& storage, std::size_t bytes) {
  storage.resize(bytes);
  storage_ = &storage;
  // Hardly ever read again, it need not displace what is worked on.
  store_ =
      bytes >= kernels::kBeyondCacheBytes ? kernels::Store::kStreaming : kernels::Store::kCached;
  used_ = 0;
  saved_.clear();
}

void UndoLog::about_to(std::span<std::byte> memory) {
  if (memory.empty()) return;
  kernels::copy(storage_->data() + used_, memory.data(), memory.size(), store_);
  used_ += memory.size();
  saved_.push_back(memory);
}

void UndoLog::restore() {
  std::size_t at = 0;
  for (const std::span<std::byte> memory : saved_) {
    std::memcpy(memory.data(), storage_->data() + at, memory.size());
    at += memory.size();
  }
  saved_.clear();
}

}  // namespace elastic::collectives
