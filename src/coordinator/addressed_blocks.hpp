#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/buffer.hpp"
#include "coordinator/lane_view.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic::coordinator {

/// A tensor of blocks, each for one worker. The caller lays them out for the members of a view; by
/// the time of an attempt some of them may have left.
class AddressedBlocks {
 public:
  /// Block i, of `counts[i]` elements, is for `to.workers()[i]`; the blocks follow one another in
  /// `data`. With empty `counts` all blocks have the same size.
  AddressedBlocks(ConstTensorView data, std::vector<std::size_t> counts, Contributors to);

  /// The elements for each member, by rank; blocks for other workers are left out. kMismatch, with
  /// the reason, if the blocks do not fit the tensor or a member has none.
  Result<std::vector<std::uint64_t>> counts_for(const Members& members) const;
  /// Copies the blocks of the members, in rank order without gaps.
  void pack(const Members& members, collectives::Buffer& buffer) const;

  /// The memory of all blocks, if they are those of the members in rank order; otherwise empty.
  std::span<const std::byte> as_they_lie(const Members& members) const;

  DType dtype() const { return data_.dtype; }

 private:
  std::string find_fault() const;

  ConstTensorView data_;
  std::vector<std::size_t> counts_;
  Contributors to_;
  std::string fault_;
  std::vector<std::size_t> offsets_;  // elements before each block
};

}  // namespace elastic::coordinator
