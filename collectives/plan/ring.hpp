#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/plan/parts.hpp"
#include "collectives/plan/plan.hpp"

namespace elastic::plan {

/// Reduces part i of kData (see `part_begin`) into its place on rank i; what lies at the places of
/// the other parts is garbage afterwards.
Plan ring_reduce_scatter(int rank, int size, Elements elements, std::size_t segment_bytes);

/// Blocks of `counts[i]` elements come to lie one after another in kData; rank i has block i in
/// kInput, which is other memory.
Plan ring_allgather(int rank, const std::vector<std::uint64_t>& counts, std::size_t element_bytes,
                    std::size_t segment_bytes);

}  // namespace elastic::plan
