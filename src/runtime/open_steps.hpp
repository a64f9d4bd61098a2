#pragma once

#include <map>
#include <string>

#include "base/mutex.hpp"

namespace elastic::runtime {

/// The StepGroups of a worker with tensors that were not waited for: a commit refuses them.
///
/// Any thread.
class OpenSteps {
 public:
  /// `step` has begun, with a tensor of this name.
  void begun(const void* step, const std::string& name) {
    const MutexLock lock(mutex_);
    first_.try_emplace(step, name);
  }
  void ended(const void* step) {
    const MutexLock lock(mutex_);
    first_.erase(step);
  }
  /// Throws Error(kInvalidArgument) if there is one.
  void refuse_commit() const;

 private:
  mutable Mutex mutex_;
  std::map<const void*, std::string> first_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::runtime
