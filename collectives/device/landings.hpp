#pragma once

#include <deque>
#include <memory>

#include "base/mutex.hpp"
#include "collectives/device/landing.hpp"

namespace elastic::device {

/// The results that are on their way to tensors on devices, the oldest first. The library goes on
/// meanwhile, as the memory of each is its own, but keeps only a few of them.
///
/// Any thread.
class Landings {
 public:
  /// Keeps it until it is over. Waits for the oldest where too many are on their way.
  void add(std::shared_ptr<Landing> landing);
  /// Waits until all that have been added are over.
  void wait();

 private:
  Mutex mutex_;
  std::deque<std::shared_ptr<Landing>> under_way_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::device
