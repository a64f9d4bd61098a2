#pragma once

#include <cstdint>

namespace elastic::kernels::device {

// The work of a block of threads: the device and the tests of the plan use the same functions.

/// Bytes of the widest access of a thread.
inline constexpr std::uint32_t kAccessBytes = 16;

/// Between two ranges, where elements may be of different sizes.
struct Access {
  /// Elements that a thread reads at once and writes at once, a power of two, so that each of the
  /// two accesses is at a multiple of its size. 0: not even elements are, and go byte by byte.
  std::uint32_t lanes = 0;
  /// Elements in front of the first such place, fewer than `lanes`; moved one by one.
  std::uint32_t head = 0;
};

/// For ranges at these addresses with elements of these sizes, powers of two up to kAccessBytes.
constexpr Access access_between(std::uint64_t from, std::uint32_t from_size, std::uint64_t to,
                                std::uint32_t to_size) {
  if (from % from_size != 0 || to % to_size != 0) return {};
  // Numbered from address 0, elements whose numbers are multiples of `lanes` may begin an access.
  // A source and its destination are that together as far as the ends of their numbers agree.
  const std::uint64_t differ = (from / from_size) ^ (to / to_size);
  std::uint32_t lanes = kAccessBytes / (from_size < to_size ? to_size : from_size);
  while ((differ & (lanes - 1)) != 0) lanes /= 2;
  const auto past = static_cast<std::uint32_t>((from / from_size) & (lanes - 1));
  return {lanes, (lanes - past) & (lanes - 1)};
}

/// Elements begin, …, end - 1 of a tensor.
struct Chunk {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The number of chunks of `elements` in a tensor of `count`, at least 1; 0 where `count` is 0.
constexpr std::uint64_t chunks_of(std::uint64_t count, std::uint32_t head, std::uint32_t elements) {
  if (count <= head) return count == 0 ? 0 : 1;
  return (count - head + elements - 1) / elements;
}

/// Chunk `index` of these. The first has the head on top, so that all others begin where an access
/// may, provided that `elements` is a multiple of the access.
constexpr Chunk chunk_at(std::uint64_t index, std::uint64_t count, std::uint32_t head,
                         std::uint32_t elements) {
  const std::uint64_t begin = index == 0 ? 0 : head + index * elements;
  const std::uint64_t end = head + (index + 1) * elements;
  return {begin, end < count ? end : count};
}

/// A chunk, as its threads move it: `head` elements one by one, `accesses` whole accesses, and
/// `tail` elements one by one.
struct ChunkParts {
  std::uint32_t head = 0;
  std::uint32_t accesses = 0;
  std::uint32_t tail = 0;
};

constexpr ChunkParts parts_of(Chunk chunk, Access access) {
  const auto elements = static_cast<std::uint32_t>(chunk.end - chunk.begin);
  if (access.lanes <= 1) return {0, access.lanes * elements, (1 - access.lanes) * elements};
  std::uint32_t head = chunk.begin == 0 ? access.head : 0;
  if (head > elements) head = elements;
  const std::uint32_t accesses = (elements - head) / access.lanes;
  return {head, accesses, elements - head - accesses * access.lanes};
}

}  // namespace elastic::kernels::device
