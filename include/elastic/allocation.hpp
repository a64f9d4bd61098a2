#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "elastic/types.hpp"

namespace elastic {

/// Owns memory from Context::allocate. The memory is zero at first and has pages of its own; from
/// 2 MiB on it is aligned to 2 MiB. The destructor gives it back: no call may use it then.
class Allocation {
 public:
  /// Owns nothing.
  Allocation() = default;
  /// For the library. The deleter of `data` gives the memory back.
  Allocation(std::shared_ptr<std::byte> data, std::size_t bytes)
      : data_(std::move(data)), bytes_(bytes) {}
  /// Takes the memory over from `other`, which owns nothing afterwards.
  /// \{
  Allocation(Allocation&& other) noexcept
      : data_(std::move(other.data_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Allocation& operator=(Allocation&& other) noexcept {
    data_ = std::move(other.data_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  /// \}

  /// \returns the first byte; null if it owns nothing.
  void* data() const noexcept { return data_.get(); }
  /// \returns the size in bytes.
  std::size_t bytes() const noexcept { return bytes_; }

  /// \returns the memory as elements: as many as there is room for.
  template <Element T>
  std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_.get()), bytes_ / sizeof(T)};
  }

 private:
  std::shared_ptr<std::byte> data_;
  std::size_t bytes_ = 0;
};

}  // namespace elastic
