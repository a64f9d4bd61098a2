#include "collectives/plan/neighbours.hpp"

#include <set>

#include "collectives/plan/allreduce.hpp"
#include "collectives/plan/barrier.hpp"
#include "collectives/plan/choose.hpp"
#include "collectives/plan/plan.hpp"

namespace elastic::plan {

std::vector<int> neighbours(int rank, const Hosts& hosts) {
  std::set<int> found;
  const auto add = [&](const Plan& plan) {
    for (const Step& step : plan.steps) {
      if (step.peer != Step::kNone) found.insert(step.peer);
    }
  };
  const int size = hosts.size();
  // Enough elements for every rank to have a part, and parts of one segment.
  const std::size_t line = 64;
  const Elements elements{static_cast<std::size_t>(size) * line, 1};
  add(dissemination_barrier(rank, size));  // trees have the same edges, whatever the root is
  add(recursive_doubling_allreduce(rank, size, 1));
  add(ring_allreduce(rank, size, elements, line));
  if (hosts.count() > 1) {
    const auto cells =
        static_cast<std::size_t>(hosts.count()) * static_cast<std::size_t>(hosts.most_ranks());
    add(hierarchical_allreduce(rank, hosts, {cells * line, 1}, line));
    if (hosts.count() >= kLeastCirculantHosts) {
      add(circulant_allreduce(rank, hosts, {cells * line, 1}, line));
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace elastic::plan
