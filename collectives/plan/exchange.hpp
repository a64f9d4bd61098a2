#pragma once

#include <cstddef>
#include <vector>

#include "collectives/plan/plan.hpp"

namespace elastic::plan {

/// Blocks of `bytes` lie one after another in kData, one per rank; every rank sends its own to
/// every other rank: one hop, for small blocks. No rank completes before every rank has started.
Plan one_shot_allgather(int rank, int size, std::size_t bytes);

/// With more ranks the other algorithm has fewer messages.
inline constexpr int kOneShotAllgatherRanks = 16;

/// The same in log2(size) hops, with as many peers (Bruck et al. 1997: Efficient algorithms for
/// all-to-all communications): in each hop a rank gives all blocks that it has to a rank ever
/// farther away.
Plan dissemination_allgather(int rank, int size, std::size_t bytes);

/// kData goes from those that have it to those that do not, in segments: of n donors
/// each sends every n-th segment. A rank that is in neither list does nothing. May complete on some
/// ranks before others have started.
Plan transfer(int rank, const std::vector<int>& donors, const std::vector<int>& receivers,
              std::size_t bytes, std::size_t segment_bytes);

}  // namespace elastic::plan
