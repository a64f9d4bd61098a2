#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace elastic::training {

/// Appends `value` as it lies in memory. All workers of a job run on the same byte order.
template <typename T>
requires std::is_arithmetic_v<T>
void put(std::vector<std::byte>& bytes, T value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

/// Appends `part` with its length in front.
inline void put_part(std::vector<std::byte>& bytes, std::span<const std::byte> part) {
  put(bytes, std::uint64_t{part.size()});
  bytes.insert(bytes.end(), part.begin(), part.end());
}

/// Takes values off the front of a byte string, in the order they were put.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  /// False, and `value` as it was, when fewer bytes are left.
  template <typename T>
  requires std::is_arithmetic_v<T>
  [[nodiscard]] bool take(T& value) {
    if (rest_.size() < sizeof(T)) return false;
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return true;
  }

  /// Takes a part that `put_part` appended; valid as long as the byte string.
  [[nodiscard]] bool take_part(std::span<const std::byte>& part) {
    std::uint64_t size = 0;
    if (!take(size) || size > rest_.size()) return false;
    part = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(part.size());
    return true;
  }

  std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace elastic::training
