#pragma once

#include <cstddef>

#include "collectives/plan/plan.hpp"

/// Broadcasts kData of `root`. A rank may complete before others have started: where that must not
/// be, a barrier goes first.
namespace elastic::plan {

/// Every rank that has the data passes it on whole, to half of those that are left: log2(size)
/// hops.
Plan tree_broadcast(int rank, int size, int root, std::size_t bytes);

/// From rank to rank, in segments: every rank sends the data once at most.
Plan chain_broadcast(int rank, int size, int root, std::size_t bytes, std::size_t segment_bytes);

}  // namespace elastic::plan
