#include "collectives/transport/flow_count.hpp"

#include <algorithm>
#include <limits>
#include <sched.h>
#include <unistd.h>

#include <sys/resource.h>

namespace elastic::transport {

std::size_t flows_per_link(const FarLinks& far, std::size_t descriptors) {
  const std::size_t ranks = std::max({far.ranks_here, far.ranks_there, std::size_t{1}});
  const std::size_t wanted = (kFlowsBetweenHosts + ranks - 1) / ranks;
  const std::size_t room = descriptors / 2 / std::max(far.links, std::size_t{1});
  return std::clamp(room, std::size_t{1}, std::max(wanted, std::size_t{1}));
}

Cores count_cores() {
  const auto of_host = static_cast<std::size_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return {of_host, of_host};
  return {of_host, static_cast<std::size_t>(CPU_COUNT(&usable))};
}

std::size_t threads_per_lane(const Cores& cores, std::size_t ranks_here) {
  constexpr std::size_t kCoresPerThread = 4;
  constexpr std::size_t kMost = 4;
  const std::size_t of_each = cores.of_host / std::max(ranks_here, std::size_t{1});
  return std::clamp(std::min(of_each, cores.usable) / kCoresPerThread, std::size_t{1}, kMost);
}

std::size_t descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<std::size_t>::max();
  }
  return static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace elastic::transport
