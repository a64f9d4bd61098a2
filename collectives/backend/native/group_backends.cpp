#include "collectives/backend/native/group_backends.hpp"

#include <utility>

namespace elastic::collectives {

Backend& GroupBackends::of(const std::vector<int>& ranks) {
  if (const auto found = backends_.find(ranks); found != backends_.end()) return *found->second;
  if (backends_.size() >= kMost) backends_.clear();
  std::vector<int> hosts;
  for (const int rank : ranks) hosts.push_back(hosts_.of(rank));
  auto backend = make_(std::make_shared<transport::Mesh>(mesh_, ranks), std::move(hosts));
  return *backends_.emplace(ranks, std::move(backend)).first->second;
}

}  // namespace elastic::collectives
