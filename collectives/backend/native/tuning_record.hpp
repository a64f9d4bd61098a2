#pragma once

#include <optional>
#include <utility>

#include "base/mutex.hpp"
#include "collectives/plan/tuning.hpp"
#include "elastic/diagnostics.hpp"

namespace elastic::collectives {

/// The tuning of a lane's backend in its latest view, and the costs of its links for the next view.
/// Thread-safe: the thread that runs a view's first operation writes, any thread reads.
class TuningRecord {
 public:
  void set(Tuning tuning, const plan::LinkCosts& costs) {
    const MutexLock lock(mutex_);
    latest_ = std::move(tuning);
    costs_ = costs;
  }
  Tuning latest() const {
    const MutexLock lock(mutex_);
    return latest_;
  }
  /// None before the first view.
  std::optional<plan::LinkCosts> costs() const {
    const MutexLock lock(mutex_);
    return costs_;
  }

 private:
  mutable Mutex mutex_;
  Tuning latest_ ELASTIC_GUARDED_BY(mutex_);
  std::optional<plan::LinkCosts> costs_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::collectives
