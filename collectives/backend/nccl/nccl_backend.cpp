#include "collectives/backend/nccl/nccl_backend.hpp"

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "collectives/backend/nccl/block_counts.hpp"
#include "collectives/backend/nccl/collectives/work_for.hpp"
#include "collectives/backend/nccl/communicator/communicator_reaper.hpp"
#include "collectives/backend/nccl/communicator/view_communicator.hpp"
#include "collectives/backend/nccl/communicator/view_communicators.hpp"
#include "collectives/backend/nccl/lane_operation.hpp"
#include "collectives/backend/nccl/memory/registrations.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "collectives/backend/nccl/readiness.hpp"
#include "collectives/backend/nccl/verdict.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::collectives::nccl {
namespace {

/// Collectives by NCCL for tensors on devices. Steps of an operation:
/// 1. Take the turn on the tensors' device, if it becomes free soon.
/// 2. Take the memory for the operation, and vote with all ranks whether NCCL performs it
///    (Readiness). This also advances the making of the view's communicator. An allgather takes its
///    memory after the vote, when the ranks have exchanged their counts (`agree_on_gathering`).
/// 3. If so, perform it by NCCL, and exchange whether it succeeded on all ranks (`by_nccl`).
///    Meanwhile the next operation begins, if it is known (`begin_next`): the device packs its
///    tensors, and with the verdict on this one the ranks exchange whether all are ready for the
///    next one. As soon as they are, NCCL has it, and its steps 1 and 2 are over.
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
  void expect(Upcoming upcoming) override { upcoming_ = std::move(upcoming); }
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
  /// The operation after the present one, or between two the next one: without `work` it has not
  /// begun early. It counts as a use of the communicator.
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
                      std::shared_ptr<Communicator> communicator,
                      device::BlockPool::Block registered) const;
  Status by_nccl_or_host(LaneOperation& operation, bool agreed, Turn& turn, Part& part,
                         Payload& payload);
  Result<bool> by_nccl(LaneOperation& operation, Part& part, Payload& payload);
  void begin_next(Verdict& verdict, const Part& present, const Meanwhile& meanwhile);
  bool prepare_next(const Coming& coming, const Part& present);
  void drop_next();
  Result<bool> conclude(Verdict& verdict, bool succeeded, const Call& call, Part& part,
                        Payload& payload);
  Status by_host(LaneOperation& operation, Payload& payload);
  Status stop(const Part& part, const Status& why);
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
};

Status NcclBackend::run(std::uint64_t position, const Call& call, Payload& payload) {
  LaneOperation operation{position, call};
  if (next_.part.work) {
    operation.phase = transport::OpTag::kLater;  // the ranks have met, in the operation before
    if (told_.insert("early").second) {
      log::info("nccl, generation {}: buckets of tensors on devices begin early from now on",
                view_.generation);
    }
    Next begun = std::exchange(next_, {});
    return by_nccl_or_host(operation, true, begun.turn, begun.part, payload);
  }
  if (call.kind == Kind::kTransfer) {
    if (Status begun = begin_communicator(operation); !begun.ok()) return begun;
    return by_host(operation, payload);
  }
  if (!is_for_nccl(call.kind) || !call.group.empty()) return by_host(operation, payload);
  Result<Turn> turn = take_turn(call, payload);
  if (!turn.ok()) return turn.status();
  Part part{turn.value().device};
  const Result<bool> agreed = agree_on_work(operation, part, payload);
  if (!agreed.ok()) return agreed.status();
  return by_nccl_or_host(operation, agreed.value(), turn.value(), part, payload);
}

/// The next operation has begun meanwhile if it could: it keeps the turn.
Status NcclBackend::by_nccl_or_host(LaneOperation& operation, bool agreed, Turn& turn, Part& part,
                                    Payload& payload) {
  if (agreed) {
    const Result<bool> done = by_nccl(operation, part, payload);
    if (!done.ok()) return done.status();
    if (done.value()) {
      if (next_.part.work) next_.turn = std::move(turn);
      return {};
    }
  }
  part = {};
  turn.held.give_back();
  return by_host(operation, payload);
}

/// Before a transfer of state: begins a communicator, which NCCL makes while the state travels. The
/// ranks only have to exchange its id first.
Status NcclBackend::begin_communicator(LaneOperation& operation) {
  return agree(operation, {.device = services_.devices->expected(),
                           .held_up_until = Clock::now() + services_.head_start})
      .status();
}

Result<std::shared_ptr<Communicator>> NcclBackend::agree(LaneOperation& operation, OwnTensors own) {
  return Readiness(view_, services_, *shared_, registrations_, std::move(own)).agree(operation);
}

/// Whether NCCL performs the operation, the same on all ranks. If so, the work of all ranks is
/// prepared: they have the memory for it.
Result<bool> NcclBackend::agree_on_work(LaneOperation& operation, Part& part,
                                        const Payload& payload) {
  const Call& call = operation.call;
  OwnTensors own{part.device};
  if (part.device && call.kind == Kind::kAllreduce) {
    own.bytes = extent(payload.on_device()->tensors());
  }
  if (call.kind == Kind::kReduceScatter) {
    part.counts = plan::parts_of(call.sections.front().count, static_cast<std::size_t>(size()));
  }
  const bool gathers = call.kind == Kind::kAllgather;
  if (!gathers) {
    own.prepare = [&](std::shared_ptr<Communicator> communicator,
                      device::BlockPool::Block registered) {
      return prepare_work(call, part, *payload.on_device(), std::move(communicator),
                          std::move(registered));
    };
  }
  auto agreed = agree(operation, std::move(own));
  if (!agreed.ok()) return agreed.status();
  if (!gathers || !agreed.value()) return agreed.value() != nullptr;
  return agree_on_gathering(operation, part, payload, std::move(agreed).value());
}

/// For an allgather, after the vote: the counts say how much memory the result takes, and the ranks
/// exchange whether they have it. False: one has not, and NCCL has begun nothing.
Result<bool> NcclBackend::agree_on_gathering(LaneOperation& operation, Part& part,
                                             const Payload& payload,
                                             std::shared_ptr<Communicator> communicator) {
  auto counts = share_counts(view_, operation);
  if (!counts.ok()) return counts.status();
  part.counts = std::move(counts).value();
  const Status own =
      prepare_work(operation.call, part, *payload.on_device(), std::move(communicator), {});
  Verdict votes(*view_.mesh);
  if (Status begun = votes.begin(next_tag(operation)); !begun.ok()) return begun;
  return votes.all(own.ok());
}

/// Makes this rank's work, and takes the memory for it.
Status NcclBackend::prepare_work(const Call& call, Part& part, const DeviceTensors& tensors,
                                 std::shared_ptr<Communicator> communicator,
                                 device::BlockPool::Block registered) const {
  part.communicator = communicator;
  part.work = work_for({std::move(communicator), part.device, view_.lane, std::move(registered)},
                       call, tensors.tensors(), part.counts, rank(), size());
  Status prepared = part.work->prepare();
  if (!prepared.ok()) log::debug("nccl: this rank votes against NCCL: {}", prepared.message());
  return prepared;
}

/// Takes the turn on the tensors' device, if this rank can use NCCL for them.
Result<NcclBackend::Turn> NcclBackend::take_turn(const Call& call, const Payload& payload) {
  if (payload.on_device() == nullptr) return Turn{};
  if (const auto over = services_.reaper->over(); !over.ok()) return over.status();
  const DeviceTensors& given = *payload.on_device();
  const int index = given.device();
  if (index < 0 || !is_for_nccl(call, given.tensors())) return Turn{};
  auto device = services_.devices->open(index);
  if (!device.ok()) {
    log::warn("nccl: {}", device.status().message());
    return Turn{};
  }
  if (!device.value()->mover().takes(given.tensors())) return Turn{};
  std::size_t bytes = 0;
  for (const DeviceTensor& tensor : given.tensors()) bytes += tensor.bytes_of_wire();
  auto held = wait_for_turn(*device.value(), bytes);
  if (!held.ok()) return held.status();
  if (!held.value()) return Turn{};
  return Turn{std::move(device).value(), std::move(held).value()};
}

/// Waits while another lane has the turn. Not for ever, as that lane may itself wait for a rank
/// that waits here: about as long as the way through host memory would take.
Result<DeviceTurns::Turn> NcclBackend::wait_for_turn(SharedDevice& device, std::size_t bytes) {
  constexpr Duration kLook = std::chrono::microseconds(100);
  const TimePoint until = Clock::now() + services_.turn + std::chrono::nanoseconds(bytes);
  for (;;) {
    DeviceTurns::Turn turn = device.take_turn(kLook);
    if (turn || Clock::now() >= until) return turn;
    if (Status status = view_.mesh->progress_and_check_peers(); !status.ok()) {
      view_.mesh->abandon();
      return status;
    }
  }
}

/// Performs the call by NCCL, then the ranks tell each other whether they succeeded. False: NCCL
/// has failed on some rank, and nothing of the operation is left on this rank's device.
Result<bool> NcclBackend::by_nccl(LaneOperation& operation, Part& part, Payload& payload) {
  const ViewCommunicator::Use use(*shared_);
  Verdict verdict(*view_.mesh);
  Status links = verdict.begin(next_tag(operation));
  const auto meanwhile = [&]() -> Status {
    if (links.ok()) links = view_.mesh->progress_and_check_peers();
    if (!links.ok() || !verdict.has_failed()) return links;
    return Status(Code::kPeerLost, "NCCL has failed on another rank");
  };
  Status own = links;
  const TimePoint until = part.work->limit(services_.operation);
  if (own.ok() && !part.begun) part.begun = part.work->begin(until, meanwhile);
  if (own.ok()) own = *part.begun;
  if (own.ok()) {
    own = part.work->wait(until, [&]() -> Status {
      if (Status status = meanwhile(); !status.ok()) return status;
      begin_next(verdict, part, meanwhile);
      return {};
    });
  }
  if (!own.ok()) {
    if (Status stopped = stop(part, own); !stopped.ok()) return stopped;
    // If `abort` ended it, the view is to change, and there is no verdict to exchange.
    if (links.ok()) links = view_.mesh->progress_and_check_peers();
  }
  if (!links.ok()) return links;
  return conclude(verdict, own.ok(), operation.call, part, payload);
}

/// While NCCL performs the present operation: begins the next one, as soon as it is known, as far
/// as is possible.
void NcclBackend::begin_next(Verdict& verdict, const Part& present, const Meanwhile& meanwhile) {
  // The other lane would not get its turn.
  if (upcoming_ && present.device->is_turn_awaited()) upcoming_ = {};
  if (upcoming_) {
    const std::optional<Coming> coming = upcoming_();
    if (!coming) return;
    upcoming_ = {};
    if (prepare_next(*coming, present)) verdict.say_ready();
  }
  Part& next = next_.part;
  if (!next.work || next.begun || !verdict.all_are_ready()) return;
  next.begun = next.work->begin(next.work->limit(services_.operation), meanwhile);
}

/// False: it is to begin in its own time, such as an operation whose result is to go to registered
/// memory.
bool NcclBackend::prepare_next(const Coming& coming, const Part& present) {
  const auto tensors = coming.tensors->tensors();
  const auto device = services_.devices->open(coming.tensors->device());
  if (coming.call.kind != Kind::kAllreduce || !coming.call.group.empty() || !device.ok() ||
      device.value() != present.device || !is_for_nccl(coming.call, tensors) ||
      !present.device->mover().takes(tensors) || registrations_.are_in_use()) {
    return false;
  }
  next_.use = std::make_unique<ViewCommunicator::Use>(*shared_);
  next_.part.device = present.device;
  Status status = prepare_work(coming.call, next_.part, *coming.tensors, present.communicator, {});
  if (status.ok()) status = next_.part.work->pack_early();
  if (!status.ok()) drop_next();
  return status.ok();
}

/// NCCL has not got it.
void NcclBackend::drop_next() {
  if (next_.part.work) next_.part.work->wait_for_copies();
  next_ = {};
}

Status NcclBackend::end_early() {
  if (!next_.part.work) return {};
  Next begun = std::exchange(next_, {});
  return stop(begun.part, Status(Code::kAborted, "the operation will not be run"));
}

/// Exchanges whether the ranks have succeeded. The result is that of `by_nccl`.
Result<bool> NcclBackend::conclude(Verdict& verdict, bool succeeded, const Call& call, Part& part,
                                   Payload& payload) {
  const Result<bool> all = verdict.all(succeeded);
  if (!all.ok()) {
    // NCCL may have succeeded on this rank and failed on others.
    const Status stopped = stop(part, all.status());
    // Other ranks may know that all have succeeded, and go on: then this is the result.
    if (succeeded) {
      payload.form = ResultOnDevice{part.work->take_result(), std::move(part.counts), true};
    }
    return stopped.ok() ? all.status() : stopped;
  }
  if (!all.value()) {
    Status stopped = stop(part, Status(Code::kPeerLost, "NCCL has failed on another rank"));
    if (!stopped.ok()) return stopped;
    return false;
  }
  if (next_.part.work && !verdict.all_are_ready()) drop_next();
  if (told_.insert(plural(call)).second) {
    log::info("nccl, generation {}: {} of tensors on devices go by NCCL from now on",
              view_.generation, plural(call));
  }
  payload.form = ResultOnDevice{part.work->take_result(), std::move(part.counts)};
  return true;
}

/// Ends all work on the device of the operation, and of the next one if that has begun. After a
/// failure this worker has to leave.
///
/// The device ends it soon after the abort, long before NCCL has taken the communicator apart. But
/// ranks of one process may be at each other's tensors directly.
Status NcclBackend::stop(const Part& part, const Status& why) {
  if (Status gone = shared_->give_up(why); !gone.ok()) return gone;
  const bool alone = services_.communicators->has_no_other_than(view_.worker);
  const auto has_stopped = [](const Part& each) { return !each.begun || each.work->has_stopped(); };
  const auto is_unused = [&] { return alone && has_stopped(part) && has_stopped(next_.part); };
  if (Status stuck = shared_->wait_until_unused(is_unused); !stuck.ok()) return stuck;
  part.work->wait_for_copies();
  if (next_.part.work) drop_next();
  return {};
}

Status NcclBackend::by_host(LaneOperation& operation, Payload& payload) {
  if (DeviceTensors* const tensors = payload.on_device()) {
    payload.form = Packed{};
    if (Status status = tensors->to_host(payload); !status.ok()) return status;
  }
  Call here = operation.call;
  here.phase = operation.next_phase();
  return view_.native->run(operation.position, here, payload);
}

void NcclBackend::abort() noexcept {
  view_.native->abort();
  shared_->abort();
}

}  // namespace

std::unique_ptr<Backend> make_nccl_backend(ModuleView view, NcclServices services) {
  return std::make_unique<NcclBackend>(std::move(view), std::move(services));
}

}  // namespace elastic::collectives::nccl
