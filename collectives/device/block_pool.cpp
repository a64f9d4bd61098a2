#include "collectives/device/block_pool.hpp"

#include <algorithm>
#include <bit>

namespace elastic::device {

std::size_t BlockPool::size_for(std::size_t bytes) {
  constexpr std::size_t kLeast = std::size_t{64} << 10;
  const std::size_t step = std::max(kLeast, std::bit_ceil(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

bool BlockPool::clear() {
  std::map<std::size_t, std::vector<std::byte*>> spare;
  {
    const MutexLock lock(mutex_);
    spare.swap(spare_);
  }
  // Without the lock: CUDA may wait for the device before it frees memory.
  bool any = false;
  for (const auto& [size, blocks] : spare) {
    for (std::byte* const memory : blocks) give_back_(memory);
    any = any || !blocks.empty();
  }
  return any;
}

Result<BlockPool::Block> BlockPool::lend(std::size_t bytes, Spare when_short) {
  if (bytes == 0) return Block();
  const std::size_t size = size_for(bytes);
  {
    const MutexLock lock(mutex_);
    std::vector<std::byte*>& blocks = spare_[size];
    if (!blocks.empty()) {
      Block block(this, size, blocks.back());
      blocks.pop_back();
      return block;
    }
  }
  Result<std::byte*> memory = get_(size);
  if (!memory.ok() && when_short == Spare::kGivenBack && clear()) memory = get_(size);
  if (!memory.ok()) return memory.status();
  return Block(this, size, memory.value());
}

void BlockPool::reclaim(std::size_t size, std::byte* memory) {
  const MutexLock lock(mutex_);
  spare_[size].push_back(memory);
}

}  // namespace elastic::device
