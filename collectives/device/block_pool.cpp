#include "collectives/device/block_pool.hpp"

#include <algorithm>
#include <bit>

namespace elastic::device {

std::size_t BlockPool::size_for(std::size_t bytes) {
  constexpr std::size_t kLeast = std::size_t{64} << 10;
  const std::size_t step = std::max(kLeast, std::bit_ceil(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

void BlockPool::clear() {
  const MutexLock lock(mutex_);
  for (const auto& [size, blocks] : spare_) {
    for (std::byte* const memory : blocks) give_back_(memory);
  }
  spare_.clear();
}

Result<BlockPool::Block> BlockPool::lend(std::size_t bytes) {
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
  const Result<std::byte*> memory = get_(size);
  if (!memory.ok()) return memory.status();
  return Block(this, size, memory.value());
}

void BlockPool::reclaim(std::size_t size, std::byte* memory) {
  const MutexLock lock(mutex_);
  spare_[size].push_back(memory);
}

}  // namespace elastic::device
