#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "collectives/plan/tuning.hpp"
#include "elastic/diagnostics.hpp"

namespace elastic::collectives {

/// The tuning of a lane's backend in its latest view, and the costs of its links for the next view.
/// Thread-safe: the thread that runs a view's first operation writes, any thread reads.
class TuningRecord {
 public:
  void set(Tuning tuning, const plan::LinkCosts& costs) {
    const std::lock_guard<std::mutex> lock(mutex_);
    latest_ = std::move(tuning);
    costs_ = costs;
  }
  Tuning latest() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return latest_;
  }
  /// None before the first view.
  std::optional<plan::LinkCosts> costs() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return costs_;
  }

 private:
  mutable std::mutex mutex_;
  Tuning latest_;
  std::optional<plan::LinkCosts> costs_;
};

}  // namespace elastic::collectives
