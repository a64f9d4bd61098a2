#include "collectives/plan/hosts.hpp"

#include <algorithm>
#include <numeric>

namespace elastic::plan {

Hosts::Hosts(const std::vector<int>& host_of_rank) {
  std::vector<int> seen;
  for (const int number : host_of_rank) {
    const auto found = std::find(seen.begin(), seen.end(), number);
    host_of_.push_back(static_cast<int>(found - seen.begin()));
    if (found == seen.end()) {
      seen.push_back(number);
      ranks_.emplace_back();
    }
    ranks_[static_cast<std::size_t>(host_of_.back())].push_back(size() - 1);
  }
}

Hosts Hosts::one_rank_each(int size) {
  std::vector<int> numbers(static_cast<std::size_t>(size));
  std::iota(numbers.begin(), numbers.end(), 0);
  return Hosts(numbers);
}

int Hosts::most_ranks() const {
  std::size_t most = 0;
  for (const auto& ranks : ranks_) most = std::max(most, ranks.size());
  return static_cast<int>(most);
}

}  // namespace elastic::plan
