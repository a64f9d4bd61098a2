#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace elastic::little_endian {

/// Writes an unsigned number into a message: little-endian, at any offset.
template <typename T>
void put(std::span<std::byte> into, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    into[at + i] = static_cast<std::byte>((std::uint64_t{value} >> (8 * i)) & 0xffU);
  }
}

/// Reads what `put` has written.
template <typename T>
T get(std::span<const std::byte> from, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::to_integer<std::uint64_t>(from[at + i]) << (8 * i);
  }
  return static_cast<T>(value);
}

}  // namespace elastic::little_endian
