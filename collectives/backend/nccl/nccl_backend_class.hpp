#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectives/backend/nccl/collectives/device_work.hpp"
#include "collectives/backend/nccl/communicator/view_communicator.hpp"
#include "collectives/backend/nccl/communicator/view_communicators.hpp"
#include "collectives/backend/nccl/lane_operation.hpp"
#include "collectives/backend/nccl/memory/registrations.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "collectives/backend/nccl/nccl_backend.hpp"
#include "collectives/backend/nccl/readiness.hpp"
#include "collectives/backend/nccl/verdict.hpp"

namespace elastic::collectives::nccl {

/// Collectives by NCCL for tensors on devices. Steps of an operation:
/// 1. Take the turn on the tensors' device, if it becomes free soon.
/// 2. Take the memory for the operation, and vote with all ranks whether NCCL performs it
///    (Readiness). This also advances the making of the view's communicator. An allgather takes its
///    memory after the vote, when the ranks have exchanged their counts (`agree_on_gathering`).
/// 3. If so, perform it by NCCL, and exchange whether it succeeded on all ranks (`by_nccl`).
///    Meanwhile the next operation begins, if it is known: the device packs its tensors, and with
///    the verdict on this one the ranks exchange whether all are ready for the next one
///    (`look_for_next`). As soon as they are, NCCL has it (`begin_next`), and its steps 1 and 2 are
///    over.
/// 4. Otherwise, or if NCCL failed on a rank, perform it in host memory by the native backend.
///
/// Owned by the thread that runs the lane's operation. Any thread may call `abort`.
class NcclBackend final : public Backend {
 public:
  NcclBackend(ModuleView view, NcclServices services)
      : view_(std::move(view)),
        services_(std::move(services)),
        shared_(services_.communicators->of(
            view_.worker, {view_.generation, view_.mesh->rank(), view_.mesh->size()}, services_)) {}
  ~NcclBackend() override { static_cast<void>(NcclBackend::end_early()); }
  NcclBackend(const NcclBackend&) = delete;
  NcclBackend& operator=(const NcclBackend&) = delete;

  Status prepare(std::uint64_t position) override { return view_.native->prepare(position); }
  Status run(std::uint64_t position, const Call& call, Payload& payload) override;
  plan::AllreduceLimits allreduce_limits() const override {
    return {.zero_copy_from = view_.native->allreduce_limits().zero_copy_from};
  }
  Status settle() override { return view_.native->settle(); }
  Status settle_error(std::uint64_t position, const std::vector<int>& ranks) override {
    return view_.native->settle_error(position, ranks);
  }
  Status hand_over(std::uint64_t position, const HandoverPairs& pairs, Parcel& parcel) override {
    return view_.native->hand_over(position, pairs, parcel);
  }
  void expect(Upcoming upcoming) override {
    if (services_.overlaps) upcoming_ = std::move(upcoming);
  }
  Status end_early() override;
  void abort() noexcept override;
  int rank() const override { return view_.mesh->rank(); }
  int size() const override { return view_.mesh->size(); }
  const char* name() const override { return "nccl"; }

 private:
  /// The device of an operation's tensors, if this lane has the turn on it.
  struct Turn {
    std::shared_ptr<SharedDevice> device;
    DeviceTurns::Turn held;
  };

  /// This rank's part in an operation by NCCL.
  struct Part {
    std::shared_ptr<SharedDevice> device;
    std::shared_ptr<Communicator> communicator = nullptr;
    std::unique_ptr<DeviceWork> work = nullptr;  ///< with its memory, if it is not null
    std::vector<std::uint64_t> counts = {};      ///< of each rank; none where there are no blocks
    std::optional<Status> begun = {};            ///< the outcome of DeviceWork::begin
  };
  /// An operation that begins early: the one after the present one, which `run` finds here in its
  /// turn. Without `work` there is none. It counts as a use of the communicator.
  struct Next {
    Turn turn;
    Part part;
    std::unique_ptr<ViewCommunicator::Use> use;
  };
  using Meanwhile = DeviceWork::Meanwhile;

  Status begin_communicator(LaneOperation& operation);
  Result<Turn> take_turn(const Call& call, const Payload& payload);
  Result<DeviceTurns::Turn> wait_for_turn(SharedDevice& device, std::size_t bytes);
  Result<std::shared_ptr<Communicator>> agree(LaneOperation& operation, OwnTensors own);
  Result<bool> agree_on_work(LaneOperation& operation, Part& part, const Payload& payload);
  Result<bool> agree_on_gathering(LaneOperation& operation, Part& part, const Payload& payload,
                                  std::shared_ptr<Communicator> communicator);
  Status prepare_work(const Call& call, Part& part, const DeviceTensors& tensors,
                      DeviceWork::Where where) const;
  Status by_nccl_or_host(LaneOperation& operation, bool agreed, Turn& turn, Part& part,
                         Payload& payload);
  Result<bool> by_nccl(LaneOperation& operation, Part& part, Payload& payload);
  Result<bool> perform(LaneOperation& operation, Part& part, Payload& payload);
  void look_for_next(Verdict& verdict, const Part& present);
  bool prepare_next(const Coming& coming, const Part& present);
  void begin_next(Verdict& verdict, const Meanwhile& meanwhile);
  void drop_next();
  Result<bool> conclude(const Result<bool>& all, bool succeeded, const Call& call, Part& part,
                        Payload& payload);
  Status by_host(LaneOperation& operation, Payload& payload);
  Status stop(const Part& part, const Status& why, Verdict* verdict = nullptr);
  transport::OpTag next_tag(LaneOperation& operation) const {
    return {view_.generation, operation.position, operation.next_phase()};
  }

  ModuleView view_;
  const NcclServices services_;
  const std::shared_ptr<ViewCommunicator> shared_;
  std::set<std::string> told_;  // calls whose use of NCCL was logged, and "early"
  Registrations registrations_;
  Upcoming upcoming_;  // empty: not to be asked any more
  Next next_;
  /// Buckets of so many bytes do not begin early any more: there was no memory for one.
  std::size_t too_large_ = std::numeric_limits<std::size_t>::max();
};

}  // namespace elastic::collectives::nccl
