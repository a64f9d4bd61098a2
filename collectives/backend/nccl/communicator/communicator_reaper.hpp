#pragma once

#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "base/status.hpp"
#include "collectives/backend/nccl/communicator/communicator.hpp"

namespace elastic::collectives::nccl {

/// Communicators of past views, until NCCL has released their resources on the device. All backends
/// of a worker share one instance. No backend begins a communicator before that, and the process
/// does not end while a thread is in NCCL.
///
/// Any thread.
class CommunicatorReaper {
 public:
  /// Aborts the communicator and takes it over, if it has not done so yet. Does not wait.
  void add(std::shared_ptr<Communicator> communicator) noexcept;

  /// Adds a retired communicator, which ends when none is made of it, or with the one that is.
  void add_retired(std::shared_ptr<Communicator> communicator) noexcept;

  /// Whether NCCL has released all of them, but for those that are still retired. kUnavailable:
  /// NCCL hangs in one of them permanently, and this worker has to exit.
  Result<bool> over();

  /// Waits until `over`, within the communicators' deadlines.
  Status wait();

 private:
  std::vector<std::shared_ptr<Communicator>> all();
  Status forget_ended(TimePoint until);
  void keep(std::shared_ptr<Communicator> communicator) noexcept;

  Mutex mutex_;
  std::vector<std::shared_ptr<Communicator>> communicators_ ELASTIC_GUARDED_BY(mutex_);
  Status stuck_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::collectives::nccl
