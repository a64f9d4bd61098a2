#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/backend/backend.hpp"
#include "elastic/types.hpp"

namespace elastic::coordinator {

/// The shape of a block without its first axis: that of all members.
using RowShape = std::span<const std::size_t>;

transport::Fingerprint fingerprint(collectives::Kind kind, DType dtype, ReduceOp op,
                                   std::size_t count, std::uint32_t detail = 0,
                                   std::size_t tensors = 1);

// The fingerprints of calls. `count` is in elements: of the tensor, or of one block.

/// `row`: see hash_of_row.
transport::Fingerprint allgather_fingerprint(DType dtype, std::uint32_t row);
/// The blocks are equal.
transport::Fingerprint alltoall_fingerprint(DType dtype, std::size_t count, std::uint32_t row);
/// `root`: CallRoot::detail.
transport::Fingerprint gather_fingerprint(DType dtype, std::uint32_t row, std::uint32_t root);

/// A call on one section.
collectives::Call simple_call(collectives::Kind kind, DType dtype, ReduceOp op, std::size_t count);

/// A call that ends in kMismatch with `error` on all ranks, whatever the others have called.
collectives::Call impossible_call(std::string error);

/// 0 for no axes: of blocks in one dimension.
std::uint32_t hash_of_row(RowShape row);

}  // namespace elastic::coordinator
