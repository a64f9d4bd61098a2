// The part of Lane that its owner runs: attempts at operations, hand-overs, and the kept result.
#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/log.hpp"
#include "collectives/plan/allreduce_way.hpp"
#include "coordinator/lane.hpp"

namespace elastic::coordinator {

namespace {

/// Marks the barrier that ranks run in place of a lost operation, as distinct from a barrier of the
/// caller.
constexpr std::uint32_t kLostDetail = 0x4c4f5354;  // "LOST"

collectives::Call lost_call() {
  collectives::Call call;
  call.kind = collectives::Kind::kBarrier;
  call.fingerprint.kind = static_cast<std::uint8_t>(collectives::Kind::kBarrier);
  call.fingerprint.detail = kLostDetail;
  return call;
}

transport::Fingerprint fingerprint_of(const collectives::Backend& backend, Operation& operation,
                                      const Members& members) {
  return transport::performed_by(backend.name(), operation.call(members).fingerprint);
}

collectives::Call performed_by(const collectives::Backend& backend, collectives::Call call) {
  call.fingerprint = transport::performed_by(backend.name(), call.fingerprint);
  return call;
}

bool is_eager(const collectives::Backend& backend, const collectives::SmallCall& call) {
  return plan::choose_way({.bytes = call.input.size()}, backend.allreduce_limits()) ==
         plan::AllreduceWay::kEager;
}

/// An operation's error, encoded for a parcel: the code, then the text.
std::string pack_error(const Status& error) {
  return static_cast<char>(error.code()) + error.message();
}
Status unpack_error(const std::string& packed, std::uint64_t generation) {
  return Status(static_cast<Code>(packed.front()), packed.substr(1), -1, generation);
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
  for (bool begun = false;; begun = true) {
    Result<Ownership> ownership = acquire(view_timeout);
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
                                                    const collectives::SmallCall& call,
                                                    std::byte* output) {
  // Ownership keeps the view in place, so that it needs no reference of its own.
  LaneView* view = nullptr;
  std::uint64_t position = 0;
  {
    const MutexLock lock(mutex_);
    if (!closed_.ok() || !available() || ledger_.next() != Ledger::Step::kAttempt ||
        !is_eager(*view_->backend, call)) {
      return std::nullopt;
    }
    owned_ = true;
    ledger_.begun({});
    begun_kind_ = call.fingerprint.kind;
    position = ledger_.position();
    view = view_.get();
  }
  const Ownership ownership(this, nullptr);
  return or_leave([&] { return try_small(*view, position, call, output); });
}

/// Requires ownership.
std::optional<Result<Contributors>> Lane::try_small(LaneView& view, std::uint64_t position,
                                                    const collectives::SmallCall& call,
                                                    std::byte* output) {
  work_.clear();
  work_.data.resize(call.input.size());
  const Status status = view.backend->run_small(position, call, work_.data.data());
  if (!status.ok()) {
    attempted_by_ = view.members;
    attempted_call_ = transport::performed_by(view.backend->name(), call.fingerprint);
    if (!collectives::is_shared_error(status)) {
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
  std::copy_n(kept_.payload.data.data(), call.input.size(), output);
  return view.members->contributors();
}

Ledger::Step Lane::next() const {
  const MutexLock lock(mutex_);
  return ledger_.next();
}

Lane::Attempt Lane::resume(Ownership& ownership, Operation* operation) {
  return or_leave([&] { return try_resume(ownership.view(), operation); });
}

Lane::Attempt Lane::attempt(Ownership& ownership, Operation& operation) {
  return or_leave([&] { return try_attempt(ownership.view(), operation); });
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
  return deliver(*operation, attempted_by_ ? attempted_by_ : view.members);
}

Lane::Attempt Lane::try_attempt(LaneView& view, Operation& operation) {
  operation.choose_ways(view.backend->allreduce_limits());
  const collectives::Call call = performed_by(*view.backend, operation.call(*view.members));
  {
    const MutexLock lock(mutex_);
    ledger_.begun(operation.needs());
    begun_kind_ = call.fingerprint.kind;
  }
  attempted_by_ = view.members;
  attempted_call_ = call.fingerprint;
  if (next() == Ledger::Step::kEndAsLost) return end_as_lost(view);
  work_.clear();
  operation.pack(*view.members, work_);
  const Status status = run_lent(*view.backend, call);
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

Status Lane::leave_for(const std::exception_ptr& exception) noexcept {
  std::string what = "an exception";
  try {
    std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    what = "lack of memory";
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    // An exception of another type has no text.
  }
  return leave(
      Status(Code::kInternal, "this worker has left the job, as a collective ended here with " +
                                  what + "; end it, and it can join again"));
}

Status Lane::leave(const Status& why) {
  close(why);
  {
    const MutexLock lock(mutex_);
    if (std::exchange(left_, true)) return why;
  }
  if (callbacks_.on_leave) callbacks_.on_leave(why);
  return why;
}

Status Lane::leave_after(const Status& timeout) {
  return leave(timeout.within(
      "this worker has left the job, because no view came in which to complete what it had begun"));
}

/// No view came for the present call. If the call had begun, its outcome on other ranks is unknown,
/// so the next call must not take its place: this worker leaves.
Status Lane::give_up(const Status& failure) {
  {
    const MutexLock lock(mutex_);
    if (!closed_.ok()) return closed_;
    if (failure.code() != Code::kTimeout || !ledger_.is_open()) return failure;
  }
  return leave_after(failure);
}

/// Checks rule R10 of docs/atomicity.md: the kept result belongs to this call. It must carry the
/// fingerprint of the latest attempt here and, unless it is an error, of the call on the rank that
/// gave it. (An error can be the result of calls that differ.)
Status Lane::check_result(LaneView& view, Operation& operation) {
  const Members& members = attempted_by_ ? *attempted_by_ : *view.members;
  const transport::Fingerprint called = fingerprint_of(*view.backend, operation, members);
  transport::Fingerprint result = called;
  if (attempted_by_ && attempted_call_ != called) {
    result = attempted_call_;
  } else if (kept_.error.empty()) {
    result = kept_.fingerprint;
  }
  if (result == called) return {};
  return Status(Code::kInternal, "the result of another call, " + transport::describe(result) +
                                     ", was about to be delivered to " +
                                     transport::describe(called) +
                                     "; report this as a defect of elastic");
}

/// The work buffer becomes the kept result of the operation that is now complete.
void Lane::keep_work() {
  work_.swap(kept_.payload);
  kept_.error.clear();
}

/// Makes sure that no rank needs this rank's copy of a zero-copy result. The result is in the
/// caller's memory, which belongs to the caller again when the call returns. By then either all
/// ranks have the result, or it has been copied.
void Lane::settle(LaneView& view) {
  const Status settled = view.backend->settle();
  if (settled.ok()) return;
  (void)interrupted(view, settled);
  try {
    kept_.payload.make_contiguous();
  } catch (const std::bad_alloc&) {
    // A later view may name this worker as a holder, and it has no copy to give: it leaves.
    kept_.payload.clear();
    (void)leave(Status(Code::kInternal, "no memory left to keep the result of an allreduce in"));
  }
}

/// Sends or takes the result of the operation before the view's position.
Status Lane::hand_over(LaneView& view) {
  const bool takes = view.takes();
  if (view.sends()) {
    if (Status host = kept_.payload.bring_to_host(); !host.ok()) return leave(host);
  }
  collectives::Backend::Parcel taken;
  const Status status =
      view.backend->hand_over(view.position - 1, view.handover, takes ? taken : kept_);
  if (!status.ok()) return status;
  if (takes) {
    // The part of a reduce_scatter is in this rank's work buffer, where it was complete before the
    // operation was.
    if (work_.own_block_complete()) taken.payload.swap(work_);
    kept_ = std::move(taken);
  }
  {
    const MutexLock lock(mutex_);
    ledger_.handed_over(!kept_.error.empty());
  }
  if (takes) note_resumed();
  return {};
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

Lane::Attempt Lane::deliver(Operation& operation, const std::shared_ptr<const Members>& members) {
  operation.unpack(*members, kept_.payload);
  kept_.payload.release_tensors();
  Attempt result;
  result.final = true;
  result.contributors = members->contributors();
  attempted_by_.reset();  // `members` may be a reference to it
  return result;
}

Lane::Attempt Lane::deliver_error(std::uint64_t generation) {
  {
    const MutexLock lock(mutex_);
    ledger_.delivered();
  }
  attempted_by_.reset();
  Attempt result;
  result.final = true;
  result.status = unpack_error(kept_.error, generation);
  return result;
}

Lane::Attempt Lane::end_as_lost(LaneView& view) {
  collectives::Payload nothing;
  const Status met =
      view.backend->run(position(), performed_by(*view.backend, lost_call()), nothing);
  if (collectives::is_shared_error(met)) return end_in_error(view, met);
  if (!met.ok()) return interrupted(view, met);
  return end_in_error(
      view, Status(Code::kRootLost,
                   "the root of the broadcast died before any member had all of its data; "
                   "choose a root of the present view and call again",
                   -1, view.generation()));
}

/// Completes the operation with `error` as its result on every rank. The caller gets the error only
/// when all ranks have it. A program often ends with the error: a rank that does not have it yet
/// would then replay the operation without this rank.
Lane::Attempt Lane::end_in_error(LaneView& view, const Status& error) {
  kept_.error = pack_error(error);
  kept_.fingerprint = attempted_call_;
  kept_.payload.clear();
  {
    const MutexLock lock(mutex_);
    ledger_.completed_in_error();
  }
  note_resumed();
  if (const Status settled = settle_error(view); !settled.ok()) return interrupted(view, settled);
  return deliver_error(view.generation());
}

/// Waits until all ranks in the call have its error.
Status Lane::settle_error(LaneView& view) {
  const std::uint64_t done = position() - 1;
  Status met = view.backend->settle_error(done, view.ranks_in_call(done));
  if (met.ok()) {
    const MutexLock lock(mutex_);
    ledger_.settled();
  }
  return met;
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
