#include "runtime/step_contributors.hpp"

#include <algorithm>

namespace elastic::runtime {

const Contributors& latest(const std::vector<Contributors>& all) {
  return *std::ranges::max_element(all, {}, &Contributors::generation);
}

std::vector<std::size_t> to_sum_again(const std::vector<Contributors>& all) {
  std::vector<std::size_t> again;
  if (all.empty()) return again;
  const auto last = latest(all).workers();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!std::ranges::equal(all[i].workers(), last)) again.push_back(i);
  }
  return again;
}

}  // namespace elastic::runtime
