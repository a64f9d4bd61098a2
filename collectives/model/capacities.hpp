#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collectives/model/fabric.hpp"
#include "collectives/model/fair_share.hpp"

namespace elastic::model {

/// The capacity that each resource has at a moment. A resource with credit has more until the
/// credit is used up, as a token bucket (`tc tbf`) lets a burst pass.
class Capacities {
 public:
  /// All credit is there.
  explicit Capacities(std::span<const Fabric::Resource> resources);

  std::span<const double> now() const { return now_; }
  /// To be called when the rates have changed.
  void observe(std::span<const Activity> activities);
  /// Seconds after which a capacity falls, at the present rates.
  double until_fall() const;
  /// Lets time pass. \returns whether a capacity has changed.
  bool pass(double seconds);

 private:
  struct Credit {
    std::size_t resource;
    double left;
    double change = 0;  // per second
  };
  const Fabric::Resource& resource(const Credit& credit) const {
    return resources_[credit.resource];
  }

  std::vector<Fabric::Resource> resources_;
  std::vector<double> now_;
  std::vector<Credit> credits_;
};

}  // namespace elastic::model
