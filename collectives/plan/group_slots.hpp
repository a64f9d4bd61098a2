#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "collectives/plan/parts.hpp"

namespace elastic::plan {

/// Where the tensors of a grouped reduce_scatter lie in one buffer: in one slot for each rank, with
/// its part of each tensor, in the order of the tensors. All slots are equally large, so that one
/// reduce_scatter of the buffer gives each rank its parts.
///
/// Each part has the room of the largest part of its tensor, and the elements behind a smaller one,
/// of which the tensor has enough, fill it: so a slot has no gaps. It ends at a multiple of
/// kAlignment bytes.
class GroupSlots {
 public:
  static constexpr std::size_t kAlignment = 64;

  /// `counts`: elements of each tensor. `element`: bytes of one, a divisor of kAlignment.
  GroupSlots(std::vector<std::size_t> counts, std::size_t element, std::size_t ranks)
      : counts_(std::move(counts)), ranks_(ranks) {
    places_.reserve(counts_.size());
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      places_.push_back(filled_);
      filled_ += largest(i);
    }
    const std::size_t unit = kAlignment / element;
    slot_ = (filled_ + unit - 1) / unit * unit;
  }

  std::size_t tensors() const { return counts_.size(); }
  std::size_t ranks() const { return ranks_; }
  /// Elements of one slot, of the parts in it, and of all slots.
  std::size_t slot() const { return slot_; }
  std::size_t filled() const { return filled_; }
  std::size_t total() const { return slot_ * ranks_; }
  /// Elements from the begin of a slot to the part of the tensor.
  std::size_t place(std::size_t tensor) const { return places_[tensor]; }
  /// First element of the part of `rank` in the tensor, and its number of elements. From there on
  /// the tensor has at least `largest` elements.
  std::size_t begin(std::size_t tensor, std::size_t rank) const {
    return part_begin(counts_[tensor], ranks_, rank);
  }
  std::size_t count(std::size_t tensor, std::size_t rank) const {
    return begin(tensor, rank + 1) - begin(tensor, rank);
  }
  /// Elements of the largest part of the tensor.
  std::size_t largest(std::size_t tensor) const { return (counts_[tensor] + ranks_ - 1) / ranks_; }

 private:
  std::vector<std::size_t> counts_;
  std::size_t ranks_;
  std::vector<std::size_t> places_;
  std::size_t filled_ = 0;
  std::size_t slot_ = 0;
};

}  // namespace elastic::plan
