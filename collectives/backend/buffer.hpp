#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <span>

#include <sys/mman.h>

namespace elastic::collectives {

/// Memory that is aligned at least to a cache line. It grows without keeping its content and never
/// shrinks by itself, so that a training loop allocates only in its first step.
class Buffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  /// Makes `size()` equal to `bytes`; the content is unspecified after growth.
  /// \throws std::bad_alloc if there is no memory for it; then nothing has changed.
  void resize(std::size_t bytes) {
    if (bytes > capacity_) {
      const std::size_t alignment = bytes < kHugeFrom ? kAlignment : kHugePage;
      // Rounding up would overflow.
      if (bytes > std::numeric_limits<std::size_t>::max() - alignment) {
        throw std::bad_array_new_length();
      }
      const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
      memory_ =
          Memory(static_cast<std::byte*>(::operator new(rounded, std::align_val_t(alignment))),
                 Free{alignment});
      if (alignment == kHugePage) ::madvise(memory_.get(), rounded, MADV_HUGEPAGE);
      capacity_ = rounded;
    }
    size_ = bytes;
  }
  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  std::span<std::byte> bytes() { return {memory_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  /// Size from which the buffer asks for huge pages: each takes one page fault and one entry of the
  /// TLB instead of 512.
  static constexpr std::size_t kHugeFrom = std::size_t{4} << 20;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  struct Free {
    std::size_t alignment;
    void operator()(std::byte* memory) const {
      ::operator delete(memory, std::align_val_t(alignment));
    }
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  Memory memory_{nullptr, Free{kAlignment}};
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace elastic::collectives
