#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace elastic::cuda_stand_in {

/// The memory that the stand-in has given out. Only the stand-in can read and write that of a
/// device: any other access to it ends the process.
class Memory {
 public:
  enum class Kind { kHost, kDevice, kManaged };
  struct Block {
    Kind kind = Kind::kHost;
    int device = 0;
    std::size_t bytes = 0;
    std::byte* inside = nullptr;  ///< where the stand-in finds it
  };

  /// Null where there is no memory.
  std::byte* allocate(Kind kind, int device, std::size_t bytes);
  /// Whether there was such a block.
  bool free(const void* memory);
  /// The block that an address lies in, and how far from its start; false if it is in none.
  bool find(const void* address, Block& block, std::size_t& offset) const;
  /// The address at which the stand-in can access so many bytes of a device; null if they are not
  /// in one block, or not a device's.
  std::byte* inside(std::uintptr_t address, std::size_t bytes) const;
  /// Bytes of all devices that are given out.
  std::size_t device_bytes() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Block> blocks_;
};

}  // namespace elastic::cuda_stand_in
