#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "elastic/collectives.hpp"
#include "elastic/detail/export.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic {

/// Some rows of a tensor with `width` elements in each row, such as the gradient of an embedding.
/// Does not own them.
struct SparseRowsView {
  std::span<const std::int64_t> indices;  ///< of the rows; one may come several times
  ConstTensorView values;                 ///< the rows, one after another, in host memory
  std::size_t width = 1;                  ///< elements of a row
  std::size_t rows = 0;                   ///< of the whole tensor: each index is less
};

/// The sum of the rows that all members gave.
struct SparseRows {
  std::vector<std::int64_t> indices;  ///< ascending, each once
  std::vector<std::byte> values;      ///< the rows, in their order
  Contributors contributors;          ///< the workers with rows in it, and those that gave none
};

/// Sums sparse rows over all members of a Context or a Group, without the rows that no member gave.
/// Members may give different rows, and any number of them. One operation carries indices and
/// values, so both have the same contributors after a death. Rows with the same index are added in
/// rank order, and those of one member in its order: the bits are the same on all ranks.
///
/// All rows go to all members: with n members it moves n times the rows that one gives, and a dense
/// allreduce twice the tensor. So it pays where a member gives less than some 2/n of all rows.
/// \returns the rows, the same on all members.
/// \throws Error as Context::allgather; also kMismatch, on all members, for another width, type,
///   number of rows or operation on one of them; kInvalidArgument, on all members, for an index
///   that is no row; the messages name the rank. kInvalidArgument on this member for values that
///   are not as many as indices and width say, and for other operations than kSum and kAverage.
ELASTIC_API SparseRows sparse_allreduce(Collectives& members, const SparseRowsView& rows,
                                        ReduceOp op = ReduceOp::kSum);

}  // namespace elastic
