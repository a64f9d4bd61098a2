#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace elastic::collectives {

/// Bytes aligned to a cache line. Grows without keeping its content and never shrinks by itself, so
/// that a training loop allocates only in its first step.
class Buffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  /// Makes `size()` equal to `bytes`; the content is unspecified after growth.
  void resize(std::size_t bytes) {
    if (bytes > capacity_) {
      const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      memory_.reset(static_cast<std::byte*>(::operator new(rounded, std::align_val_t(kAlignment))));
      capacity_ = rounded;
    }
    size_ = bytes;
  }
  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  std::span<std::byte> bytes() { return {memory_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete(memory, std::align_val_t(kAlignment));
    }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace elastic::collectives
