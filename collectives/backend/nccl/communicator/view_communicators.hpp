#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.hpp"
#include "collectives/backend/nccl/communicator/view_communicator.hpp"

namespace elastic::collectives::nccl {

/// The communicators of the views of all workers in a process, and those that are retired, of which
/// each worker has one at most. `worker` is a worker's incarnation.
///
/// Any thread.
class ViewCommunicators {
 public:
  /// The communicator of `view`, which is the worker's newest. Ends a retired one that cannot be
  /// shrunk to it.
  std::shared_ptr<ViewCommunicator> of(const std::string& worker, DecidedView view,
                                       const NcclServices& services);
  /// Whether `worker` is the only one in this process that may have a communicator.
  bool has_no_other_than(const std::string& worker);

  /// Keeps the communicator on `device` for the worker's newest view, or ends it if it cannot be
  /// shrunk to that one.
  void retire(const std::string& worker, std::shared_ptr<Communicator> communicator,
              const SharedDevice& device, CommunicatorReaper& reaper) noexcept;
  /// Before the newest view begins a communicator on `device`: ends a retired one elsewhere.
  void end_retired_elsewhere(const std::string& worker, const SharedDevice& device,
                             CommunicatorReaper& reaper);
  /// The newest view begins a communicator: its parent, or null if there is none.
  std::shared_ptr<Communicator> take_retired(const std::string& worker);
  /// Ends all that are retired.
  void end_retired(CommunicatorReaper& reaper);

 private:
  struct Retired {
    std::shared_ptr<Communicator> communicator;
    const SharedDevice* device = nullptr;  // the communicator keeps it alive
  };

  struct Newest {
    DecidedView view;
    bool has_begun = false;  // its communicator
  };

  void forget_ended() ELASTIC_REQUIRES(mutex_);
  std::shared_ptr<Communicator> take_useless(const std::string& worker) ELASTIC_REQUIRES(mutex_);

  Mutex mutex_;
  std::map<std::pair<std::string, std::uint64_t>, std::weak_ptr<ViewCommunicator>> all_
      ELASTIC_GUARDED_BY(mutex_);
  std::map<std::string, Newest> newest_ ELASTIC_GUARDED_BY(mutex_);
  std::map<std::string, Retired> retired_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::collectives::nccl
