#include "collectives/transport/flow_count.hpp"

#include <algorithm>
#include <limits>

#include <sys/resource.h>

namespace elastic::transport {

std::size_t flows_per_link(const FarLinks& far, std::size_t descriptors) {
  const std::size_t ranks = std::max({far.ranks_here, far.ranks_there, std::size_t{1}});
  const std::size_t wanted = (kFlowsBetweenHosts + ranks - 1) / ranks;
  const std::size_t room = descriptors / 2 / std::max(far.links, std::size_t{1});
  return std::clamp(room, std::size_t{1}, std::max(wanted, std::size_t{1}));
}

std::size_t descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<std::size_t>::max();
  }
  return static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace elastic::transport
