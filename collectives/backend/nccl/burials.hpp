#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/nccl/communicator.hpp"

namespace elastic::collectives::nccl {

/// Communicators of views that are over, until NCCL has given back what they hold of the device.
/// The backends of a worker share one: none begins a communicator before, and the process does not
/// end under a thread that is in NCCL.
///
/// Any thread.
class Burials {
 public:
  /// Aborts it, and waits for nothing.
  void add(std::shared_ptr<Communicator> communicator) noexcept;

  /// Whether NCCL has given all of them back. kUnavailable: there is one that it never will, and
  /// this worker has to exit.
  Result<bool> over();

  /// Waits for that, as long as their deadlines allow.
  Status wait();

 private:
  std::vector<std::shared_ptr<Communicator>> all();
  Status forget_ended(TimePoint until);

  std::mutex mutex_;
  std::vector<std::shared_ptr<Communicator>> communicators_;
  Status stuck_;
};

}  // namespace elastic::collectives::nccl
