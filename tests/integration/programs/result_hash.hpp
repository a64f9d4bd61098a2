#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace elastic::testing {

/// FNV-1a of results that have to have the same bits on all workers.
class ResultHash {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < bytes; ++i) value_ = (value_ ^ at[i]) * 1099511628211U;
  }
  template <typename T>
  void add(const std::vector<T>& values) {
    add(values.data(), values.size() * sizeof(T));
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037U;
};

}  // namespace elastic::testing
