#include "coordinator/call_root.hpp"

#include <algorithm>

#include "collectives/transport/frame.hpp"

namespace elastic::coordinator {

CallRoot::CallRoot(Root root, const Members& members, bool renewed) : renewed_(renewed) {
  const auto* const worker = std::get_if<WorkerId>(&root);
  if (worker != nullptr) named_as_worker_ = *worker;
  const int rank = worker != nullptr ? members.rank_of(*worker) : std::get<int>(root);
  if (rank >= 0) incarnation_ = members.incarnations[static_cast<std::size_t>(rank)];
  is_this_worker_ = rank == members.rank;
}

int CallRoot::rank_in(const Members& members) const {
  return std::max(members.rank_of(incarnation_), 0);
}

std::uint32_t CallRoot::detail(const Members& members) const {
  if (!named_as_worker_) return static_cast<std::uint32_t>(rank_in(members));
  const int rank = members.rank_of(*named_as_worker_);
  return rank < 0 ? transport::Fingerprint::lost_worker(*named_as_worker_)
                  : transport::Fingerprint::root_worker(rank);
}

}  // namespace elastic::coordinator
