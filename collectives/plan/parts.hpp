#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace elastic::plan {

/// Elements of one size.
struct Elements {
  std::size_t count = 0;
  std::size_t bytes = 1;  ///< of one element
};

/// First element of part `index` of `count` elements cut into `parts`: floor(count * index / parts)
/// without overflow. Part i is [part_begin(i), part_begin(i + 1)).
constexpr std::size_t part_begin(std::size_t count, std::size_t parts, std::size_t index) {
  return count / parts * index + count % parts * index / parts;
}

/// Elements of each of `parts` such parts.
inline std::vector<std::uint64_t> parts_of(std::size_t count, std::size_t parts) {
  std::vector<std::uint64_t> counts(parts);
  for (std::size_t i = 0; i < parts; ++i) {
    counts[i] = part_begin(count, parts, i + 1) - part_begin(count, parts, i);
  }
  return counts;
}

/// Bytes [offset, offset + bytes) cut into pieces of at most `piece` bytes; one empty piece if
/// there is nothing, so that every block is at least one message.
class Pieces {
 public:
  Pieces(std::size_t offset, std::size_t bytes, std::size_t piece)
      : offset_(offset), bytes_(bytes), piece_(piece) {}
  std::size_t count() const { return bytes_ == 0 ? 1 : (bytes_ - 1) / piece_ + 1; }
  std::size_t offset(std::size_t index) const { return offset_ + index * piece_; }
  std::size_t bytes(std::size_t index) const { return std::min(piece_, bytes_ - index * piece_); }

 private:
  std::size_t offset_;
  std::size_t bytes_;
  std::size_t piece_;
};

/// `segment_bytes` rounded down to whole elements, but at least one.
constexpr std::size_t whole_elements(std::size_t segment_bytes, std::size_t element_bytes) {
  return std::max(segment_bytes / element_bytes, std::size_t{1}) * element_bytes;
}

/// The rank `steps` places after `rank` in the ring; `steps` may be negative.
constexpr int around(int rank, int steps, int size) {
  return ((rank + steps) % size + size) % size;
}

}  // namespace elastic::plan
