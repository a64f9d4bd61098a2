#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace elastic::plan {

/// Where the blocks of one rank lie in its block of a grouped allgather: after the number of
/// elements of each, a std::uint64_t, in the order of the tensors. Each begins, and the whole block
/// ends, at a multiple of kAlignment bytes.
class GroupBlock {
 public:
  static constexpr std::size_t kAlignment = 64;

  /// `bytes`: of the rank's block of each tensor.
  explicit GroupBlock(std::span<const std::size_t> bytes) {
    bytes_ = aligned(head(bytes.size()));
    places_.reserve(bytes.size());
    for (const std::size_t each : bytes) {
      places_.push_back(bytes_);
      bytes_ += aligned(each);
    }
  }

  /// Bytes of the numbers of elements.
  static constexpr std::size_t head(std::size_t tensors) { return tensors * sizeof(std::uint64_t); }
  /// Bytes of the whole block.
  std::size_t bytes() const { return bytes_; }
  /// Bytes from the begin of the block to that of the tensor.
  std::size_t place(std::size_t tensor) const { return places_[tensor]; }

 private:
  static constexpr std::size_t aligned(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  std::vector<std::size_t> places_;
  std::size_t bytes_ = 0;
};

}  // namespace elastic::plan
