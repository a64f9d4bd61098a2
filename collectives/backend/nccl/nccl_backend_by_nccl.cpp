// The part of NcclBackend that has NCCL perform an operation, and the next one beside it.
#include <optional>
#include <span>
#include <utility>

#include "base/log.hpp"
#include "collectives/backend/nccl/collectives/work_for.hpp"
#include "collectives/backend/nccl/nccl_backend_class.hpp"

namespace elastic::collectives::nccl {

namespace {

/// The reason to give a communicator up whose peers' links have failed. It deserves no warning, as
/// the workers are about to change.
Status lost(const Status& links) {
  return Status(Code::kAborted, links.message());
}

}  // namespace

/// Performs the call by NCCL, then the ranks tell each other whether they succeeded. False: NCCL
/// has failed on some rank, and nothing of the operation is left on this rank's device.
Result<bool> NcclBackend::by_nccl(LaneOperation& operation, Part& part, Payload& payload) {
  const ViewCommunicator::Use use(*shared_);
  try {
    return perform(operation, part, payload);
  } catch (...) {  // such as for lack of memory, while NCCL is at the tensors
    static_cast<void>(stop(part, Status(Code::kAborted, "this worker leaves the job")));
    throw;
  }
}

Result<bool> NcclBackend::perform(LaneOperation& operation, Part& part, Payload& payload) {
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
      look_for_next(verdict, part);
      begin_next(verdict, meanwhile);
      return {};
    });
  }
  if (!own.ok()) {
    // If `abort` ended it, NCCL has not failed: the view is to change.
    if (links.ok()) links = view_.mesh->progress_and_check_peers();
    if (links.ok()) verdict.say_failed();
    const Status why = links.ok() ? own : lost(links);
    if (Status stopped = stop(part, why, &verdict); !stopped.ok()) return stopped;
  }
  if (!links.ok()) return links;
  // NCCL connects the ranks when it first needs to. Then it takes the next operation only when it
  // has it from all of them, those that wait here among them.
  const Result<bool> all = verdict.all(own.ok(), [&] {
    if (own.ok()) begin_next(verdict, meanwhile);
  });
  if (all.ok() && all.value() && !verdict.all_are_ready()) drop_next();
  return conclude(all, own.ok(), operation.call, part, payload);
}

/// Asks for the operation after the present one, until it is known. If this rank can begin it
/// early, the device packs its tensors, and the other ranks are told.
void NcclBackend::look_for_next(Verdict& verdict, const Part& present) {
  // The other lane would not get its turn.
  if (upcoming_ && present.device->is_turn_awaited()) upcoming_ = {};
  if (!upcoming_) return;
  const std::optional<Coming> coming = upcoming_();
  if (!coming) return;
  upcoming_ = {};
  if (prepare_next(*coming, present)) verdict.say_ready();
}

/// False: it is to begin in its own time, such as an operation whose result is to go to registered
/// memory.
bool NcclBackend::prepare_next(const Coming& coming, const Part& present) {
  const auto tensors = coming.tensors->tensors();
  const int index = coming.tensors->device();
  if (index < 0) return false;
  const auto device = services_.devices->open(index);
  if (coming.call.kind != Kind::kAllreduce || !coming.call.group.empty() || !device.ok() ||
      device.value() != present.device || !is_for_nccl(coming.call, tensors) ||
      !present.device->mover().takes(tensors) || registrations_.are_in_use() ||
      extent(tensors) >= too_large_) {
    return false;
  }
  next_.use = std::make_unique<ViewCommunicator::Use>(*shared_);
  next_.part.device = present.device;
  Status status = prepare_work(coming.call, next_.part, *coming.tensors,
                               {.communicator = present.communicator,
                                .device = present.device,
                                .lane = view_.lane,
                                .lack = SharedDevice::Lack::kDoesNotMatter});
  if (status.ok()) status = next_.part.work->pack_early();
  if (status.ok()) return true;
  log::info("nccl, generation {}: buckets of {} bytes and more do not begin early any more: {}",
            view_.generation, extent(tensors), status.message());
  too_large_ = extent(tensors);
  drop_next();
  return false;
}

/// Gives the next operation to NCCL as soon as all ranks are ready for it.
void NcclBackend::begin_next(Verdict& verdict, const Meanwhile& meanwhile) {
  Part& next = next_.part;
  if (!next.work || next.begun || !verdict.all_are_ready()) return;
  next.begun = next.work->begin(next.work->limit(services_.operation), meanwhile);
}

/// The device has at most packed its tensors, or the stream of the present operation is over.
void NcclBackend::drop_next() {
  if (next_.part.work) next_.part.work->wait_for_packing();
  next_ = {};
}

Status NcclBackend::end_early() {
  if (!next_.part.work) return {};
  Next begun = std::exchange(next_, {});
  return stop(begun.part, Status(Code::kAborted, "the operation will not be run"));
}

/// After the exchange `all` of whether the ranks have succeeded. The result is that of `by_nccl`.
Result<bool> NcclBackend::conclude(const Result<bool>& all, bool succeeded, const Call& call,
                                   Part& part, Payload& payload) {
  if (!all.ok()) {
    // NCCL may have succeeded on this rank and failed on others.
    const Status stopped = stop(part, lost(all.status()));
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
/// ranks of one process may be at each other's tensors directly, and work that NCCL has not quite
/// begun can end at any time before that. NCCL may have to wait for the aborts of other ranks: so
/// `verdict` tells them meanwhile.
Status NcclBackend::stop(const Part& part, const Status& why, Verdict* verdict) {
  if (Status gone = shared_->give_up(why); !gone.ok()) return gone;
  const bool alone = services_.communicators->has_no_other_than(view_.worker);
  const auto has_stopped = [](const Part& each) { return !each.begun || each.work->has_stopped(); };
  const auto is_unused = [&] {
    bool moved = false;
    if (verdict != nullptr && view_.mesh->progress(moved).ok()) (void)verdict->has_failed();
    return alone && has_stopped(part) && has_stopped(next_.part);
  };
  if (Status stuck = shared_->wait_until_unused(is_unused); !stuck.ok()) return stuck;
  part.work->wait_for_copies();
  drop_next();
  return {};
}

}  // namespace elastic::collectives::nccl
