#pragma once

#include <cstdint>
#include <vector>

#include "base/reduce_ops.hpp"
#include "collectives/backend/backend.hpp"

namespace elastic::collectives {

/// Those that combine element by element.
inline constexpr ReduceOp kOps[] = {
    ReduceOp::kSum,        ReduceOp::kAverage,   ReduceOp::kMin,       ReduceOp::kMax,
    ReduceOp::kProduct,    ReduceOp::kBitAnd,    ReduceOp::kBitOr,     ReduceOp::kBitXor,
    ReduceOp::kLogicalAnd, ReduceOp::kLogicalOr, ReduceOp::kLogicalXor};
/// Whether callers give elements of `dtype` to the operation.
inline bool combines(ReduceOp op, DType dtype) {
  return refusal(op, dtype).empty() || op == ReduceOp::kAverage;
}

/// Section of one tensor at the start of the data.
Section section(DType dtype, std::size_t count, std::size_t offset = 0);

Call allreduce_call(DType dtype, std::size_t count, ReduceOp op = ReduceOp::kSum);
Call broadcast_call(DType dtype, std::size_t count, int root);
/// `count` may differ between ranks.
Call allgather_call(DType dtype, std::size_t count);
Call reduce_scatter_call(DType dtype, std::size_t count, ReduceOp op = ReduceOp::kSum);
Call barrier_call();
/// `counts`: elements for each rank. With one count for all it is not ragged.
Call alltoall_call(DType dtype, const std::vector<std::uint64_t>& counts, bool ragged = true);
/// `count` may differ between ranks.
Call gather_call(DType dtype, std::size_t count, int root);
/// `counts`: elements for each rank; on ranks other than the root empty.
Call scatter_call(DType dtype, const std::vector<std::uint64_t>& counts, int root);
Call reduce_call(DType dtype, std::size_t count, int root, ReduceOp op = ReduceOp::kSum);
Call scan_call(DType dtype, std::size_t count, bool exclusive = false,
               ReduceOp op = ReduceOp::kSum);

/// Writes `values` as elements of `dtype`. Small whole numbers fit into all of them.
void fill(Buffer& buffer, const Section& section, const std::vector<double>& values);
std::vector<double> values_of(const std::byte* data, DType dtype, std::size_t count);

/// Data with `values` in a section.
Payload payload(const Section& section, const std::vector<double>& values);
void expect_ok(const Status& status);

/// The values of rank `rank`: small enough that no sum or product of six of them is rounded.
std::vector<double> contribution(int rank, std::size_t count, DType dtype);
/// Combined over the ranks 0 .. size-1.
std::vector<double> combined(int size, std::size_t count, DType dtype, ReduceOp op);

}  // namespace elastic::collectives
