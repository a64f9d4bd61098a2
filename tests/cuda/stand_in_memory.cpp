#include "cuda/stand_in_memory.hpp"

#include <unistd.h>

#include <sys/mman.h>

namespace elastic::cuda_stand_in {

namespace {

std::byte* mapped(int protection, int flags, int file, std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, protection, flags, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

std::byte* Memory::allocate(Kind kind, int device, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const int file = ::memfd_create("cuda-stand-in", MFD_CLOEXEC);
  if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) return nullptr;
  const int outside = kind == Kind::kDevice ? PROT_NONE : PROT_READ | PROT_WRITE;
  Block block{kind, device, bytes, mapped(PROT_READ | PROT_WRITE, MAP_SHARED, file, bytes)};
  std::byte* const memory = mapped(outside, MAP_SHARED, file, bytes);
  ::close(file);
  if (block.inside == nullptr || memory == nullptr) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  blocks_[reinterpret_cast<std::uintptr_t>(memory)] = block;
  return memory;
}

bool Memory::free(const void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == blocks_.end()) return false;
  ::munmap(found->second.inside, found->second.bytes);
  ::munmap(const_cast<void*>(memory), found->second.bytes);
  blocks_.erase(found);
  return true;
}

bool Memory::find(const void* address, Block& block, std::size_t& offset) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard<std::mutex> lock(mutex_);
  auto found = blocks_.upper_bound(at);
  if (found == blocks_.begin()) return false;
  --found;
  if (at - found->first >= found->second.bytes) return false;
  block = found->second;
  offset = at - found->first;
  return true;
}

std::size_t Memory::device_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [address, block] : blocks_) {
    if (block.kind == Kind::kDevice) bytes += block.bytes;
  }
  return bytes;
}

std::byte* Memory::inside(std::uintptr_t address, std::size_t bytes) const {
  Block block;
  std::size_t offset = 0;
  if (!find(reinterpret_cast<const void*>(address), block, offset)) return nullptr;
  if (block.kind == Kind::kHost || bytes > block.bytes - offset) return nullptr;
  return block.inside + offset;
}

}  // namespace elastic::cuda_stand_in
