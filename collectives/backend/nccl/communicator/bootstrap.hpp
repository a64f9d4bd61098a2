#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/nccl/communicator/communicator.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"

namespace elastic::collectives::nccl {

/// The exchanges of the ranks that make a communicator: of NCCL's id, and later whether NCCL has
/// made it. A failure on one rank is the same error on all.
///
/// Owned by the thread that makes the communicator.
class Bootstrap {
 public:
  /// `plan` must outlive this.
  explicit Bootstrap(const CommunicatorPlan& plan) : plan_(plan) {}

  /// NCCL's id: rank 0 has NCCL write it before `meet`.
  ncclUniqueId& id() { return id_; }
  /// Sends the id of rank 0 to all ranks, and finds ranks that share a device. `own`: the reason
  /// why this rank cannot have a communicator, or ok.
  Status meet(const Status& own);
  /// Compares the outcomes of all ranks: `own` is this rank's.
  Status agree(const Status& own) const;

 private:
  Status read(std::vector<std::string> messages);

  const CommunicatorPlan& plan_;
  ncclUniqueId id_{};
};

}  // namespace elastic::collectives::nccl
