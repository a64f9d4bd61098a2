#pragma once

#include <cstddef>

#include "collectives/plan/parts.hpp"
#include "collectives/plan/plan.hpp"

/// Reductions whose results differ by rank: scans in place in kData, the others of kInput, which
/// may be the same memory, to kData. May complete on some ranks before others have started. The
/// order of the operands is fixed, so the same call gives the same bits.
namespace elastic::plan {

/// The root has the reduction of all ranks, the others garbage: a binomial tree, log2(size) hops of
/// the whole data, for small data.
Plan tree_reduce(int rank, int size, int root, std::size_t bytes);

/// The same along a chain, in segments: size - 1 hops, but each rank receives the data once only,
/// which is the least that the root can receive.
Plan chain_reduce(int rank, int size, int root, Elements elements, std::size_t segment_bytes);

/// Rank i has the reduction of part i (see `part_begin`) of all ranks at the start of kData, which
/// is no longer than that part, and not the same memory as kInput. Each rank sends each other one
/// that rank's part: one hop, and no rank sends or receives more than by a ring.
Plan direct_reduce_scatter(int rank, int size, Elements elements, std::size_t segment_bytes);

/// Each rank has the reduction of ranks 0 to its own, in rank order. In log2(size) hops of the
/// whole data a rank adds the sums of ranks ever farther before it (Hillis, Steele 1986: Data
/// parallel algorithms), for small data.
Plan doubling_scan(int rank, int size, std::size_t bytes);

/// The same along the chain of ranks, in segments: each rank receives the data once.
Plan chain_scan(int rank, int size, Elements elements, std::size_t segment_bytes);

/// Each rank has what the rank before it had; rank 0 keeps its own.
Plan shift(int rank, int size, std::size_t bytes);

}  // namespace elastic::plan
