#pragma once

#include <cstdint>
#include <vector>

#include "collectives/backend/backend.hpp"

namespace elastic::collectives {

inline constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin,
                                    ReduceOp::kMax, ReduceOp::kProduct};

/// Section of one tensor at the start of the data.
Section section(DType dtype, std::size_t count, std::size_t offset = 0);

Call allreduce_call(DType dtype, std::size_t count, ReduceOp op = ReduceOp::kSum);
Call broadcast_call(DType dtype, std::size_t count, int root);
/// `count` may differ between ranks.
Call allgather_call(DType dtype, std::size_t count);
Call reduce_scatter_call(DType dtype, std::size_t count, ReduceOp op = ReduceOp::kSum);
Call barrier_call();

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
