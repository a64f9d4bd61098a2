#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/backend/module.hpp"
#include "collectives/backend/nccl/communicator/view_communicator.hpp"
#include "collectives/backend/nccl/lane_operation.hpp"
#include "collectives/backend/nccl/memory/registrations.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "collectives/backend/nccl/nccl_services.hpp"

namespace elastic::collectives::nccl {

struct ReadinessVote;

/// This rank's part in an operation, as far as it concerns the use of NCCL.
struct OwnTensors {
  /// The device of the tensors, on which this lane has the turn. For a transfer of state, the
  /// device on which later tensors are expected. Null: NCCL cannot be used on this rank.
  std::shared_ptr<SharedDevice> device;
  std::size_t bytes = 0;  ///< of the result, if it may be in registered memory
  /// For a transfer of state, the end of its delay: see NcclServices::head_start.
  TimePoint held_up_until = {};

  bool are_early() const { return held_up_until != TimePoint{}; }
};

/// The objects with which a rank performs an operation by NCCL.
struct NcclMeans {
  std::shared_ptr<Communicator> communicator;
  device::BlockPool::Block registered;  ///< memory for the result; may be empty
};

/// The decision of all ranks whether NCCL performs one operation. They vote until the votes decide
/// it. Between the votes they advance the making of the view's communicator, which may take many
/// operations: they carry its messages.
///
/// Owned by the thread that runs the lane's operation.
class Readiness {
 public:
  /// The parameters must outlive this, but for `own`.
  Readiness(const ModuleView& view, const NcclServices& services, ViewCommunicator& shared,
            Registrations& registrations, OwnTensors own);

  /// The same on all ranks: the means to perform the operation by NCCL, or nothing.
  Result<std::optional<NcclMeans>> agree(LaneOperation& operation);

 private:
  Result<ReadinessVote> meet(LaneOperation& operation);
  ReadinessVote own_vote();
  void register_memory();
  Status advance(LaneOperation& operation, const ReadinessVote& all);
  Status wait_for_news();
  Status carry_messages(LaneOperation& operation);

  const ModuleView& view_;
  const NcclServices& services_;
  ViewCommunicator& shared_;
  Registrations& registrations_;
  const OwnTensors own_;
  NcclMeans means_;                          // of the latest vote
  std::optional<BootstrapMessage> message_;  // of the latest vote
};

}  // namespace elastic::collectives::nccl
