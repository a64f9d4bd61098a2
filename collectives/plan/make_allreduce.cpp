#include "collectives/plan/make_allreduce.hpp"

#include "collectives/plan/allreduce.hpp"

namespace elastic::plan {

Plan make_allreduce(AllreduceAlgorithm algorithm, int rank, const Hosts& hosts, Elements elements,
                    std::size_t segment_bytes, std::size_t exchange_segment_bytes) {
  const std::size_t bytes = elements.count * elements.bytes;
  switch (algorithm) {
    case AllreduceAlgorithm::kOneShot:
      return one_shot_allreduce(rank, hosts.size(), bytes);
    case AllreduceAlgorithm::kDoubling:
      return recursive_doubling_allreduce(rank, hosts.size(), bytes);
    case AllreduceAlgorithm::kTwoRankExchange:
      return two_rank_exchange(rank, elements, exchange_segment_bytes);
    case AllreduceAlgorithm::kTwoShot:
      return two_shot_allreduce(rank, hosts.size(), elements, segment_bytes);
    case AllreduceAlgorithm::kHierarchical:
      return hierarchical_allreduce(rank, hosts, elements, segment_bytes);
    case AllreduceAlgorithm::kCirculant:
      return circulant_allreduce(rank, hosts, elements, segment_bytes);
    case AllreduceAlgorithm::kRing:
      break;
  }
  return ring_allreduce(rank, hosts.size(), elements, segment_bytes);
}

}  // namespace elastic::plan
