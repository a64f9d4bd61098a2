#pragma once

#include <vector>

#include "collectives/model/network.hpp"
#include "collectives/model/plan_walk.hpp"
#include "collectives/plan/builder.hpp"
#include "collectives/plan/hosts.hpp"

namespace elastic::model {

/// Lines of 1 GB/s with a latency of 10 us; processors and memory without limits.
inline Network plain_network() {
  Network network;
  network.line = {.rate = 1e9, .latency = 10e-6};
  return network;
}

inline plan::Hosts blocks(int hosts, int ranks_each) {
  std::vector<int> host_of_rank;
  for (int rank = 0; rank < hosts * ranks_each; ++rank) host_of_rank.push_back(rank / ranks_each);
  return plan::Hosts(host_of_rank);
}

/// Seconds that the ranks take for a plan, as a mean over them.
inline double seconds(const Network& network, const plan::Hosts& hosts, const PlanOf& plan,
                      int flows = 1) {
  return PlanWalk(network, hosts, flows, {plan}).run(1).front();
}

inline plan::Range data(std::size_t bytes) {
  return {plan::Area::kData, 0, bytes};
}

}  // namespace elastic::model
