#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "elastic/sparse_allreduce.hpp"
#include "runtime/sparse_offer.hpp"

namespace elastic::runtime {

// How sparse rows are gathered: each member's block has the number of its tensors, the offer of
// each, and then, for each tensor, the indices and the rows. Pure.

/// The block of this member.
std::vector<std::byte> pack_rows(std::span<const SparseOffer> offers,
                                 std::span<const SparseRowsView> tensors);
/// How many bytes the block of a member with these offers has.
std::size_t packed_bytes(std::span<const SparseOffer> offers);

/// A member's rows of one tensor, in its block. They need not be aligned.
struct GatheredRows {
  const std::byte* indices;
  const std::byte* values;
};

/// The blocks of all members, one after another in rank order.
class SparseBlocks {
 public:
  /// `sizes`: the bytes of each block. `blocks` outlives this.
  SparseBlocks(std::span<const std::byte> blocks, std::span<const std::size_t> sizes);

  std::span<const SparseOffers> offers() const { return offers_; }
  /// Adds the rows of each tensor: those with the same index in rank order, and those of one member
  /// in its order. The offers are those of one call (check_offers). The sums are not divided, and
  /// have no contributors yet.
  std::vector<SparseRows> sums() const;

 private:
  SparseRows sum(std::size_t tensor) const;

  std::vector<SparseOffers> offers_;             // by rank
  std::vector<std::vector<GatheredRows>> rows_;  // by rank and tensor
};

}  // namespace elastic::runtime
