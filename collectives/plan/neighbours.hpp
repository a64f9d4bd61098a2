#pragma once

#include <vector>

#include "collectives/plan/hosts.hpp"

namespace elastic::plan {

/// The ranks that a rank exchanges messages with in the plans that every view uses: the barrier,
/// the trees of all roots, doubling, and the ring, the hierarchical and the circulant allreduce.
/// Ascending, 3 to 5 log2(size) of them and, where several hosts have several ranks, those of its
/// host. If this rank is in the list of another one, that one is in its own.
std::vector<int> neighbours(int rank, const Hosts& hosts);

}  // namespace elastic::plan
