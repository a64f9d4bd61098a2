#include "collectives/backend/native/subset_barrier.hpp"

#include <algorithm>

namespace elastic::collectives {

Status subset_barrier(transport::Mesh& mesh, const std::vector<int>& ranks) {
  if (Status linked = mesh.require(ranks); !linked.ok()) return linked;
  std::vector<transport::Link*> others;
  for (const int rank : ranks) {
    if (rank != mesh.rank()) others.push_back(&mesh.link(rank));
  }
  for (transport::Link* const other : others) {
    other->receive({});
    other->send({});
  }
  return mesh.run_until([&] {
    return std::all_of(others.begin(), others.end(), [](const transport::Link* other) {
      return other->sent() == 1 && other->received() == 1;
    });
  });
}

}  // namespace elastic::collectives
