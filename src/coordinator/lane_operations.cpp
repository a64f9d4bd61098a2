// Attempts at operations: the part of Lane that its owner runs. lane_result.cpp has their results.
#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.hpp"
#include "coordinator/lane.hpp"

namespace elastic::coordinator {

namespace {

/// Marks the barrier that ranks run in place of a lost operation, as distinct from a barrier of the
/// caller.
constexpr std::uint32_t kLostDetail = 0x4c4f5354;  // "LOST"

/// `root`: of a broadcast from a worker, as its fingerprint says it; 0: another operation is lost.
collectives::Call lost_call(std::uint32_t root) {
  collectives::Call call;
  call.kind = collectives::Kind::kBarrier;
  call.fingerprint.kind = static_cast<std::uint8_t>(collectives::Kind::kBarrier);
  call.fingerprint.detail = root != 0 ? root : kLostDetail;
  return call;
}

collectives::Call performed_by(const collectives::Backend& backend, collectives::Call call) {
  call.fingerprint = transport::performed_by(backend.name(), call.fingerprint);
  return call;
}

/// The operation's call as the view's backend performs it.
collectives::Call call_on(const LaneView& view, Operation& operation) {
  operation.choose_ways(view.backend->allreduce_limits());
  return performed_by(*view.backend, operation.call(*view.members));
}

/// The bytes of the tensors, packed, lent or in their places.
std::size_t bytes_of(const collectives::Payload& payload) {
  std::size_t bytes = payload.input().size();
  if (const collectives::DeviceTensors* const given = payload.on_device()) bytes += given->bytes();
  for (const collectives::ZeroCopyTensor& tensor : payload.zero_copy()) bytes += tensor.bytes();
  return bytes;
}

/// `upcoming` in the terms of the view's backend.
collectives::Backend::Upcoming as_backend_asks(const LaneView& view,
                                               const Lane::Upcoming& upcoming) {
  return [&view, &upcoming]() -> std::optional<collectives::Backend::Coming> {
    Operation* const next = upcoming();
    if (next == nullptr) return std::nullopt;
    return collectives::Backend::Coming{call_on(view, *next), next->on_device()};
  };
}

/// Whether `small` is for this view and its backend.
bool suits(const LaneView& view, const SmallAttempt& small) {
  return (small.generation == 0 || small.generation == view.generation()) &&
         view.backend->takes(small.call);
}

}  // namespace

/// Runs `run`, and leaves the job on an exception. An operation that threw has no outcome here, but
/// may have one on other ranks, and cannot begin again in this view. The same holds if its result
/// was lost on the way to the caller.
template <typename Run>
auto Lane::or_leave(const Run& run) {
  try {
    return run();
  } catch (...) {
    static_cast<void>(leave_for(std::current_exception()));  // thrown, not returned
    throw;
  }
}

Result<Contributors> Lane::run(const Turn& /*turn*/, Operation& operation,
                               Milliseconds view_timeout) {
  for (bool begun = is_open();; begun = true) {  // run_small may have begun it
    Result<Ownership> ownership = or_leave([&] { return acquire(view_timeout); });
    if (!ownership.ok()) return give_up(ownership.status());
    const LaneView& view = ownership.value().view();
    const bool lost = view.lost && position() == view.position;
    if (!begun && !lost && !operation.can_begin(*view.members)) {
      return Status(Code::kAborted, "the view has changed before the call began");
    }
    Attempt tried = resume(ownership.value(), &operation);
    if (!tried.final && tried.status.ok()) tried = attempt(ownership.value(), operation);
    if (!tried.final) continue;
    if (!tried.status.ok()) return tried.status;
    return std::move(tried.contributors);
  }
}

std::optional<Result<Contributors>> Lane::run_small(const Turn& /*turn*/,
                                                    const SmallAttempt& small) {
  const collectives::SmallCall& call = small.call;
  // Ownership keeps the view in place, so that it needs no reference of its own.
  LaneView* view = nullptr;
  std::uint64_t position = 0;
  {
    const MutexLock lock(mutex_);
    if (!closed_.ok() || !available() || ledger_.next() != Ledger::Step::kAttempt ||
        !suits(*view_, small)) {
      return std::nullopt;
    }
    owned_ = true;
    ledger_.begun(small.needs);
    begun_call_ = call.fingerprint;
    position = ledger_.position();
    view = view_.get();
  }
  const Ownership ownership(this, nullptr);
  trace_.begin_small(position, view->generation(), call.fingerprint.kind, call.input.size());
  return or_leave([&] { return try_small(*view, position, small); });
}

/// Requires ownership.
std::optional<Result<Contributors>> Lane::try_small(LaneView& view, std::uint64_t position,
                                                    const SmallAttempt& small) {
  const collectives::SmallCall& call = small.call;
  work_.clear();
  const Status status = view.backend->run_small(position, call, work_);
  if (!status.ok()) {
    attempted_by_ = view.members;
    attempted_call_ = transport::performed_by(view.backend->name(), call.fingerprint);
    const bool is_shared = collectives::is_shared_error(status);
    trace_.end(is_shared ? timeline::Outcome::kError : timeline::Outcome::kInterrupted,
               view.members->size());
    if (!is_shared) {
      (void)interrupted(view, status);
      return std::nullopt;
    }
    const Attempt ended = end_in_error(view, status);
    if (!ended.final) return std::nullopt;
    return ended.status;
  }
  keep_work();
  kept_.fingerprint = call.fingerprint;  // names the native backend, the only one with this path
  complete();
  small.take(*view.members, kept_.payload);
  trace_.end_small(view.members->size());
  return view.members->contributors();
}

bool Lane::is_open() const {
  const MutexLock lock(mutex_);
  return ledger_.is_open();
}

Ledger::Step Lane::next() const {
  const MutexLock lock(mutex_);
  return ledger_.next();
}

Lane::Attempt Lane::resume(Ownership& ownership, Operation* operation) {
  return or_leave([&] { return try_resume(ownership.view(), operation); });
}

Lane::Attempt Lane::attempt(Ownership& ownership, Operation& operation, const Upcoming& upcoming) {
  return or_leave([&] { return try_attempt(ownership.view(), operation, upcoming); });
}

Lane::Attempt Lane::try_resume(LaneView& view, Operation* operation) {
  if (next() == Ledger::Step::kHandOver) {
    if (const Status handed = hand_over(view); !handed.ok()) return interrupted(view, handed);
  }
  if (operation == nullptr) return {};
  if (next() == Ledger::Step::kSettle) {
    if (const Status settled = settle_error(view); !settled.ok()) return interrupted(view, settled);
  }
  if (next() != Ledger::Step::kDeliver) return {};
  if (Status wrong = check_result(view, *operation); !wrong.ok()) return {true, leave(wrong), {}};
  if (!kept_.error.empty()) return deliver_error(view.generation());
  {
    const MutexLock lock(mutex_);
    ledger_.delivered();
  }
  trace_.delivered();
  return deliver(*operation, attempted_by_ ? attempted_by_ : view.members);
}

Lane::Attempt Lane::try_attempt(LaneView& view, Operation& operation, const Upcoming& upcoming) {
  const collectives::Call call = call_on(view, operation);
  {
    const MutexLock lock(mutex_);
    ledger_.begun(operation.needs());
    begun_call_ = call.fingerprint;
  }
  attempted_by_ = view.members;
  attempted_call_ = call.fingerprint;
  const bool is_of_group = !call.group.empty();
  trace_.begin(position(), view.generation(),
               is_of_group ? call.group_fingerprint : call.fingerprint);
  if (upcoming) view.backend->expect(as_backend_asks(view, upcoming));
  Attempt ended = perform(view, operation, call);
  if (upcoming) view.backend->expect({});
  timeline::Outcome outcome = timeline::Outcome::kInterrupted;
  if (ended.final) {
    outcome = ended.status.ok() ? timeline::Outcome::kDone : timeline::Outcome::kError;
  }
  trace_.end(outcome, is_of_group ? static_cast<int>(call.group.size()) : view.members->size());
  return ended;
}

/// The owner gives the lane back, and what has begun early with it.
void Lane::end_early(LaneView& view) {
  if (const Status ended = view.backend->end_early(); !ended.ok()) static_cast<void>(leave(ended));
}

/// The attempt itself, which has begun.
Lane::Attempt Lane::perform(LaneView& view, Operation& operation, const collectives::Call& call) {
  if (next() == Ledger::Step::kEndAsLost) return end_as_lost(view, 0);
  if (operation.is_lost(*view.members)) return end_as_lost(view, call.fingerprint.detail);
  work_.clear();
  operation.pack(*view.members, work_);
  trace_.packed(bytes_of(work_));
  const Status status = run_lent(*view.backend, call);
  trace_.performed(work_.device_result() != nullptr);
  if (status.ok()) {
    keep_work();
    kept_.fingerprint = call.fingerprint;
    complete();
    if (!kept_.payload.zero_copy().empty()) settle(view);
    return deliver(operation, view.members);
  }
  if (collectives::is_shared_error(status)) return end_in_error(view, status);
  if (status.code() == Code::kUnavailable) return {true, leave(status), {}};
  return interrupted(view, status);
}

/// Runs the operation with a buffer from `spare_` for the undo log, which is needed during the
/// attempt only.
Status Lane::run_lent(collectives::Backend& backend, const collectives::Call& call) {
  collectives::SpareBuffer::Loan undo(*spare_);
  work_.undo = &undo.buffer();
  Status status = backend.run(position(), call, work_);
  work_.undo = nullptr;
  return status;
}

void Lane::complete() {
  {
    const MutexLock lock(mutex_);
    ledger_.completed();
  }
  note_resumed();
}

void Lane::note_resumed() {
  if (std::exchange(resumed_, true)) return;
  if (callbacks_.on_resumed) callbacks_.on_resumed();
}

Lane::Attempt Lane::end_as_lost(LaneView& view, std::uint32_t root) {
  collectives::Payload nothing;
  const Status met =
      view.backend->run(position(), performed_by(*view.backend, lost_call(root)), nothing);
  if (collectives::is_shared_error(met)) return end_in_error(view, met);
  if (!met.ok()) return interrupted(view, met);
  const std::string what = "the root of the " + transport::describe_kind(attempted_call_.kind) +
                           (root != 0 ? " is no member" : " is gone, and no member has its result");
  return end_in_error(
      view, Status(Code::kRootLost, what + "; choose a root of the present view and call again", -1,
                   view.generation()));
}

Lane::Attempt Lane::interrupted(const LaneView& view, const Status& failure) {
  log::debug("{}: operation {} of generation {} interrupted: {}", name_, position(),
             view.generation(), failure.message());
  {
    const MutexLock lock(mutex_);
    ledger_.spoiled();
  }
  if (failure.code() != Code::kAborted) {
    const int peer = failure.peer();
    const std::string incarnation = peer >= 0 && peer < view.members->size()
                                        ? view.members->incarnations[static_cast<std::size_t>(peer)]
                                        : std::string();
    callbacks_.on_suspect(view.generation(), incarnation, failure.message());
  }
  Attempt result;
  result.status = failure;
  return result;
}

}  // namespace elastic::coordinator
