#pragma once

#include <cstddef>
#include <functional>
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
  /// Takes the device memory for this rank's work, before a vote; the result comes to `registered`
  /// unless that is empty. Null: the memory is taken after the votes.
  std::function<Status(std::shared_ptr<Communicator>, device::BlockPool::Block registered)>
      prepare = {};
  /// For a transfer of state, the end of its delay: see NcclServices::head_start.
  TimePoint held_up_until = {};

  bool are_early() const { return held_up_until != TimePoint{}; }
};

/// Gathers a small block of each rank, all of one size, in host memory, as a phase of the
/// operation.
Status allgather(const ModuleView& view, LaneOperation& operation, Payload& block);

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

  /// The same on all ranks: the communicator that performs the operation, or null. If it is not
  /// null, `prepare` has succeeded with it on all ranks.
  Result<std::shared_ptr<Communicator>> agree(LaneOperation& operation);

 private:
  Result<ReadinessVote> meet(LaneOperation& operation);
  ReadinessVote own_vote();
  Status take_memory();
  void stop_registering();
  Status advance(LaneOperation& operation, const ReadinessVote& all);
  Status wait_for_news();
  Status carry_messages(LaneOperation& operation);

  const ModuleView& view_;
  const NcclServices& services_;
  ViewCommunicator& shared_;
  Registrations& registrations_;
  const OwnTensors own_;
  std::shared_ptr<Communicator> communicator_;  // of the latest vote
  std::optional<BootstrapMessage> message_;     // of the latest vote
  std::shared_ptr<Communicator> prepared_for_;  // the communicator of the memory that is taken
  bool registered_ = false;                     // that memory
};

}  // namespace elastic::collectives::nccl
