#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "elastic/sparse_allreduce.hpp"

namespace elastic::runtime {

/// The shape and number of the rows that a member gives of one tensor. All members compare those of
/// all, so that an error names the ranks. Sent as it lies in memory.
struct SparseOffer {
  static constexpr std::uint64_t kNoFault = ~std::uint64_t{0};
  static constexpr double kMostDenseBytes = 1e18;  ///< less than what a size_t counts

  std::uint64_t width = 1;            ///< elements of a row
  std::uint64_t rows = 0;             ///< of the whole tensor
  std::uint64_t count = 0;            ///< of the rows that this member gives
  std::uint64_t fault_at = kNoFault;  ///< the place of the first index that is no row
  std::int64_t fault = 0;             ///< that index
  std::uint32_t dtype = 0;
  std::uint8_t op = 0;
  std::uint8_t form = 0;       ///< a SparseForm
  std::uint16_t reserved = 0;  ///< is 0

  std::size_t element_bytes() const { return size_of(static_cast<DType>(dtype)); }
  std::size_t row_bytes() const { return width * element_bytes(); }
  /// The bytes of the indices and the values.
  std::size_t given_bytes() const { return count * (sizeof(std::int64_t) + row_bytes()); }
  /// The bytes of the whole tensor with a mark for each row. A float, because the numbers may be
  /// any.
  double dense_bytes() const {
    return static_cast<double>(rows) * (static_cast<double>(width) + 1) *
           static_cast<double>(element_bytes());
  }
};
static_assert(sizeof(SparseOffer) == 48);

/// Those of one member, for each tensor of its call.
using SparseOffers = std::vector<SparseOffer>;

/// Throws Error(kInvalidArgument) for rows that are not as many as indices and width say, for rows
/// outside of host memory, and for a reduction or a form that rows do not have. `call`: see
/// messages.
void check_rows(std::span<const SparseRowsView> tensors, ReduceOp op, SparseForm form,
                const char* call);

SparseOffers offers_of(std::span<const SparseRowsView> tensors, ReduceOp op, SparseForm form);

/// The error in which a call of these offers ends on all members, the same on all: the first rank
/// with another call than rank 0, or else the first index that is no row, or else a tensor that the
/// program asks for as a dense one, and that no memory can hold. `by_rank` is not empty.
Status check_offers(std::span<const SparseOffers> by_rank);

}  // namespace elastic::runtime
