#include "collectives/model/fair_share.hpp"

#include <algorithm>
#include <limits>

namespace elastic::model {
namespace {

/// Less than this part of the capacity is nothing: a remainder of rounding.
constexpr double kNothing = 1e-9;

std::size_t at(std::int32_t resource) {
  return static_cast<std::size_t>(resource);
}

}  // namespace

void FairShare::share(std::vector<Activity>& activities, std::span<const double> capacity) {
  free_.resize(capacity.size());
  load_.assign(capacity.size(), 0);
  loaded_.clear();
  rising_.clear();
  for (std::size_t i = 0; i < activities.size(); ++i) {
    activities[i].rate = 0;
    rising_.push_back(i);
    for (const Use& use : activities[i].used()) {
      if (load_[at(use.resource)] == 0) {
        loaded_.push_back(use.resource);
        free_[at(use.resource)] = capacity[at(use.resource)];
      }
      load_[at(use.resource)] += use.per_byte;
    }
  }
  while (!rising_.empty()) {
    double rise = std::numeric_limits<double>::infinity();
    for (const std::int32_t resource : loaded_) {
      if (load_[at(resource)] > 0) rise = std::min(rise, free_[at(resource)] / load_[at(resource)]);
    }
    for (const std::size_t i : rising_) {
      rise = std::min(rise, activities[i].most_rate - activities[i].rate);
    }
    for (const std::int32_t resource : loaded_) free_[at(resource)] -= rise * load_[at(resource)];
    const auto stops = [&](std::size_t i) {
      Activity& activity = activities[i];
      activity.rate += rise;
      const auto used = activity.used();
      const bool limited =
          activity.rate >= activity.most_rate * (1 - kNothing) ||
          std::any_of(used.begin(), used.end(), [&](const Use& use) {
            return free_[at(use.resource)] <= capacity[at(use.resource)] * kNothing;
          });
      if (!limited) return false;
      for (const Use& use : used) load_[at(use.resource)] -= use.per_byte;
      return true;
    };
    std::erase_if(rising_, stops);
    // What is left of a load after its last activity is a remainder of rounding.
    std::erase_if(loaded_, [&](std::int32_t resource) {
      return free_[at(resource)] <= capacity[at(resource)] * kNothing;
    });
  }
}

}  // namespace elastic::model
