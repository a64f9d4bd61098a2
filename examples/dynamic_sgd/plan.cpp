#include "examples/dynamic_sgd/plan.hpp"

#include <stdexcept>
#include <string>

namespace dynamic_sgd {

std::size_t Plan::workers_in(std::uint64_t epoch) const {
  if (epoch < grow_at) return 1;
  return epoch < shrink_at ? workers : shrink_to;
}

void check(const Plan& plan) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument(what); };
  const auto text = [](auto number) { return std::to_string(number); };
  if (plan.grow_at == 0 || plan.grow_at >= plan.shrink_at || plan.shrink_at >= plan.epochs) {
    refuse("--grow-at " + text(plan.grow_at) + ", --shrink-at " + text(plan.shrink_at) +
           " and --epochs " + text(plan.epochs) +
           ": the first must be at least 1, and each greater than the one before it");
  }
  if (plan.shrink_to == 0 || plan.shrink_to > plan.workers) {
    refuse("--shrink-to " + text(plan.shrink_to) + ": 1 to " + text(plan.workers) +
           " workers are possible, as many as --workers");
  }
}

}  // namespace dynamic_sgd
