#pragma once

#include <cstddef>

#include "collectives/plan/hosts.hpp"
#include "collectives/plan/parts.hpp"
#include "collectives/plan/plan.hpp"

/// Allreduce into kData. All ranks get the same bits. No rank completes before every rank has
/// started. Where kInput is read it may be the same memory as kData; the plans for small data work
/// in place in kData.
namespace elastic::plan {

/// Every rank sends everything to every other rank and reduces all of it in rank order: one hop.
Plan direct_allreduce(int rank, int size, std::size_t bytes);

/// Ranks exchange all data with ever farther ranks: log2(size) hops. Where size is no power of two,
/// some ranks first give their data to a neighbour and later get the result from it.
Plan recursive_doubling_allreduce(int rank, int size, std::size_t bytes);

/// Sends about twice the data whatever the size is: one part of the data per rank goes round the
/// ring to be reduced, and round again to be known to all. Parts travel in segments, each forwarded
/// as soon as it has arrived.
Plan ring_allreduce(int rank, int size, Elements elements, std::size_t segment_bytes);

/// Sends as much as the ring, in two hops instead of 2 (size - 1): segment by segment, every rank
/// is sent its part of the segment by all, reduces it, and sends the result to all. For ranks of
/// one host, where all pairs are equally near and what is sent is in the cache when it is read.
Plan pairwise_allreduce(int rank, int size, Elements elements, std::size_t segment_bytes);

/// Two ranks send each other the whole and both reduce it: one hop, and the result of a segment is
/// not touched again. A segment is received after it was sent, so that it may be overwritten: the
/// link has to take a whole one, with its header, while its peer does the same.
Plan swap_allreduce(int rank, Elements elements, std::size_t segment_bytes);

/// Reduces inside each host, then in rings among the hosts, one for each rank of the largest host,
/// and gives the results to all inside each host: between hosts there is as little as in a ring of
/// hosts, and all ranks of a host share the work. For hosts inside which there is shared memory.
Plan hierarchical_allreduce(int rank, const Hosts& hosts, Elements elements,
                            std::size_t segment_bytes);

}  // namespace elastic::plan
