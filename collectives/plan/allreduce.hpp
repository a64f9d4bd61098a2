#pragma once

#include <cstddef>

#include "collectives/plan/hosts.hpp"
#include "collectives/plan/parts.hpp"
#include "collectives/plan/plan.hpp"

/// Allreduce into kData. All ranks get the same bits. No rank completes before every rank has
/// started. Where kInput is read it may be the same memory as kData; the plans for small data work
/// in place in kData.
namespace elastic::plan {

/// One-shot: every rank sends its whole tensor to every other rank, and reduces all tensors in rank
/// order: one hop.
Plan one_shot_allreduce(int rank, int size, std::size_t bytes);

/// Ranks exchange all data with ever farther ranks: log2(size) hops. Where size is no power of two,
/// some ranks first give their data to a neighbour and later get the result from it.
Plan recursive_doubling_allreduce(int rank, int size, std::size_t bytes);

/// Sends about twice the data whatever the size is: one part of the data per rank goes round the
/// ring to be reduced, and round again to be known to all. Parts travel in segments, each forwarded
/// as soon as it has arrived.
Plan ring_allreduce(int rank, int size, Elements elements, std::size_t segment_bytes);

/// Two-shot: a direct reduce-scatter and a direct allgather, segment by segment. Sends as much as
/// the ring, in two hops instead of 2 (size - 1): every rank receives its part of the segment from
/// all, reduces it, and sends the result to all. For ranks of one host, where all pairs are equally
/// near and what is sent is in the cache when it is read.
Plan two_shot_allreduce(int rank, int size, Elements elements, std::size_t segment_bytes);

/// Two ranks send each other their whole tensors, segment by segment, and both reduce them: one
/// hop, and the result of a segment is not touched again. A rank sends a segment before it receives
/// the peer's, so that it may overwrite the segment: the link has to take a whole segment, with its
/// header, while the peer sends too.
Plan two_rank_exchange(int rank, Elements elements, std::size_t segment_bytes);

/// Reduces inside each host, then in rings among the hosts, one for each rank of the largest host,
/// and gives the results to all inside each host: between hosts there is as little as in a ring of
/// hosts, and all ranks of a host share the work. For hosts inside which there is shared memory.
Plan hierarchical_allreduce(int rank, const Hosts& hosts, Elements elements,
                            std::size_t segment_bytes);

/// Bytes. The time of a message of so many is several times what it costs beside its bytes.
inline constexpr std::size_t kShortBlock = 64 * 1024;

/// The same with 2 log2(hosts) hops between hosts instead of a ring's 2 (hosts - 1): for many
/// hosts, and data of which a host's block is short. Blocks of a host that are shorter than
/// kShortBlock, and than a segment, travel in one message for each hop, and one more at the ends of
/// the tensor.
Plan circulant_allreduce(int rank, const Hosts& hosts, Elements elements,
                         std::size_t segment_bytes);

}  // namespace elastic::plan
