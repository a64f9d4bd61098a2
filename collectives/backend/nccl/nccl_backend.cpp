#include "collectives/backend/nccl/nccl_backend.hpp"

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "collectives/backend/nccl/block_counts.hpp"
#include "collectives/backend/nccl/collectives/work_for.hpp"
#include "collectives/backend/nccl/communicator/communicator_reaper.hpp"
#include "collectives/backend/nccl/nccl_backend_class.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::collectives::nccl {

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
      return prepare_work(
          call, part, *payload.on_device(),
          {std::move(communicator), part.device, view_.lane, std::move(registered)});
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
  const Status own = prepare_work(operation.call, part, *payload.on_device(),
                                  {std::move(communicator), part.device, view_.lane});
  Verdict votes(*view_.mesh);
  if (Status begun = votes.begin(next_tag(operation)); !begun.ok()) return begun;
  return votes.all(own.ok());
}

/// Makes this rank's work, and takes the memory for it.
Status NcclBackend::prepare_work(const Call& call, Part& part, const DeviceTensors& tensors,
                                 DeviceWork::Where where) const {
  part.communicator = where.communicator;
  part.work = work_for(std::move(where), call, tensors.tensors(), part.counts, rank(), size());
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

std::unique_ptr<Backend> make_nccl_backend(ModuleView view, NcclServices services) {
  return std::make_unique<NcclBackend>(std::move(view), std::move(services));
}

}  // namespace elastic::collectives::nccl
