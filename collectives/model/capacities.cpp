#include "collectives/model/capacities.hpp"

#include <algorithm>
#include <limits>

namespace elastic::model {
namespace {

/// The part of all credit with which a burst begins again: not with every byte.
constexpr double kWorthABurst = 1.0 / 64;
/// Less than this part of all credit is none: a remainder of rounding.
constexpr double kNoCredit = 1e-9;

}  // namespace

Capacities::Capacities(std::span<const Fabric::Resource> resources)
    : resources_(resources.begin(), resources.end()) {
  for (std::size_t i = 0; i < resources_.size(); ++i) {
    const Fabric::Resource& each = resources_[i];
    now_.push_back(each.most_credit > 0 ? each.with_credit : each.capacity);
    if (each.most_credit > 0) credits_.push_back({.resource = i, .left = each.most_credit});
  }
}

void Capacities::observe(std::span<const Activity> activities) {
  if (credits_.empty()) return;
  std::vector<double> used(resources_.size());
  for (const Activity& activity : activities) {
    for (const Use& use : activity.used()) {
      used[static_cast<std::size_t>(use.resource)] += use.per_byte * activity.rate;
    }
  }
  for (Credit& credit : credits_) {
    credit.change = resource(credit).capacity - used[credit.resource];
  }
}

double Capacities::until_fall() const {
  double seconds = std::numeric_limits<double>::infinity();
  for (const Credit& credit : credits_) {
    if (credit.left > 0 && credit.change < 0) {
      seconds = std::min(seconds, credit.left / -credit.change);
    }
  }
  return seconds;
}

bool Capacities::pass(double seconds) {
  bool changed = false;
  for (Credit& credit : credits_) {
    const Fabric::Resource& its = resource(credit);
    credit.left = std::clamp(credit.left + credit.change * seconds, 0.0, its.most_credit);
    if (credit.left <= its.most_credit * kNoCredit) credit.left = 0;
    double& capacity = now_[credit.resource];
    const double before = capacity;
    if (credit.left == 0) capacity = its.capacity;
    if (credit.left >= its.most_credit * kWorthABurst) capacity = its.with_credit;
    changed = changed || capacity != before;
  }
  return changed;
}

}  // namespace elastic::model
