#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "elastic/types.hpp"

namespace elastic {

/// Owns memory from Context::allocate: zeros at first, on pages of its own; from 2 MiB on, aligned
/// to that. Given back when destroyed, which must not be while a call uses it.
class Allocation {
 public:
  Allocation() = default;
  /// For the library. `data` knows how it is given back.
  Allocation(std::shared_ptr<std::byte> data, std::size_t bytes)
      : data_(std::move(data)), bytes_(bytes) {}
  Allocation(Allocation&& other) noexcept
      : data_(std::move(other.data_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Allocation& operator=(Allocation&& other) noexcept {
    data_ = std::move(other.data_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  void* data() const noexcept { return data_.get(); }
  std::size_t bytes() const noexcept { return bytes_; }

  /// All of it, as elements: as many as there is room for.
  template <Element T>
  std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_.get()), bytes_ / sizeof(T)};
  }

 private:
  std::shared_ptr<std::byte> data_;
  std::size_t bytes_ = 0;
};

}  // namespace elastic
