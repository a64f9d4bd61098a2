// What the owner of a lane does: attempts at operations, and what is kept of them for others.
#include <algorithm>
#include <new>
#include <utility>

#include "base/log.hpp"
#include "coordinator/lane.hpp"

namespace elastic::coordinator {

namespace {

/// What ranks call instead of an operation that is lost. Tells it from a barrier of the caller.
constexpr std::uint32_t kLostDetail = 0x4c4f5354;  // "LOST"

collectives::Call lost_call() {
  collectives::Call call;
  call.kind = collectives::Kind::kBarrier;
  call.fingerprint.kind = static_cast<std::uint8_t>(collectives::Kind::kBarrier);
  call.fingerprint.detail = kLostDetail;
  return call;
}

collectives::Call performed_by(const collectives::Backend& backend, collectives::Call call) {
  call.fingerprint = transport::performed_by(backend.name(), call.fingerprint);
  return call;
}

/// An operation's error as it travels in a parcel: the code, then the text.
std::string pack_error(const Status& error) {
  return static_cast<char>(error.code()) + error.message();
}
Status unpack_error(const std::string& packed, std::uint64_t generation) {
  return Status(static_cast<Code>(packed.front()), packed.substr(1), -1, generation);
}

}  // namespace

Result<Contributors> Lane::run(const Turn& /*turn*/, Operation& operation,
                               Milliseconds view_timeout) {
  for (bool begun = false;; begun = true) {
    Result<Ownership> ownership = acquire(view_timeout);
    if (!ownership.ok()) return ownership.status();
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
  std::uint64_t position = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_.ok() || !available() || ledger_.next() != Ledger::Step::kAttempt ||
        !view_->backend->takes_small(call.input.size())) {
      return std::nullopt;
    }
    owned_ = true;
    ledger_.begun({});
    position = ledger_.position();
  }
  LaneView& view = *view_;  // stays while the lane is owned, so that the ownership needs none
  const Ownership ownership(this, nullptr);
  work_.clear();
  work_.data.resize(call.input.size());
  const Status status =
      or_leave([&] { return view.backend->run_small(position, call, work_.data.data()); });
  if (!status.ok()) {
    attempted_by_ = view.members;
    if (status.code() == Code::kMismatch) return end_in_error(status).status;
    (void)interrupted(view, status);
    return std::nullopt;
  }
  keep_work();
  complete();
  std::copy_n(kept_.payload.data.data(), call.input.size(), output);
  return view.members->contributors();
}

Ledger::Step Lane::next() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ledger_.next();
}

Lane::Attempt Lane::resume(Ownership& ownership, Operation* operation) {
  LaneView& view = ownership.view();
  if (next() == Ledger::Step::kHandOver) {
    if (const Status handed = hand_over(view); !handed.ok()) return interrupted(view, handed);
  }
  if (operation == nullptr || next() != Ledger::Step::kDeliver) return {};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ledger_.delivered();
  }
  return deliver(*operation, attempted_by_ ? attempted_by_ : view.members);
}

Lane::Attempt Lane::attempt(Ownership& ownership, Operation& operation) {
  LaneView& view = ownership.view();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ledger_.begun(operation.needs());
  }
  attempted_by_ = view.members;
  if (next() == Ledger::Step::kEndAsLost) return end_as_lost(view);
  work_.clear();
  operation.make_direct(view.backend->direct_bytes());
  const collectives::Call call = performed_by(*view.backend, operation.call(*view.members));
  operation.pack(*view.members, work_);
  const Status status = or_leave([&] { return run_lent(*view.backend, call); });
  if (status.ok()) {
    keep_work();
    complete();
    if (!kept_.payload.direct.empty()) settle(view);
    return deliver(operation, view.members);
  }
  if (status.code() == Code::kMismatch) return end_in_error(status);
  if (status.code() == Code::kUnavailable) return {true, leave(status), {}};
  return interrupted(view, status);
}

/// What is overwritten is not needed any more when the attempt is over, whatever came of it.
Status Lane::run_lent(collectives::Backend& backend, const collectives::Call& call) {
  collectives::SpareBuffer::Loan undo(*spare_);
  work_.undo = &undo.buffer();
  Status status = backend.run(position(), call, work_);
  work_.undo = nullptr;
  return status;
}

/// An operation that threw has no outcome here, but perhaps elsewhere, and cannot be begun again in
/// this view: this worker leaves.
template <typename Run>
Status Lane::or_leave(const Run& run) try {
  return run();
} catch (...) {
  close(
      Status(Code::kInternal, "an operation failed with an exception, such as for lack of memory"));
  throw;
}

/// Nobody waits for this worker any more.
Status Lane::leave(const Status& why) {
  close(why);
  if (callbacks_.on_leave) callbacks_.on_leave(why);
  return why;
}

/// What was worked on is the result of the operation that is complete now.
void Lane::keep_work() {
  std::swap(work_, kept_.payload);
  kept_.error.clear();
}

/// The result lies in the caller's memory, which is the caller's again once the call returns: so
/// either everybody has the result by then, or it is copied.
void Lane::settle(LaneView& view) {
  const Status settled = view.backend->settle();
  if (settled.ok()) return;
  (void)interrupted(view, settled);
  try {
    kept_.payload.gather();
  } catch (const std::bad_alloc&) {
    // What others may be promised cannot be kept: this worker leaves.
    kept_.payload.clear();
    close(Status(Code::kInternal, "no memory left to keep the result of an allreduce in"));
  }
}

/// Gives or takes the result of the operation before the view's position.
Status Lane::hand_over(LaneView& view) {
  const bool takes = view.takes();
  if (view.gives()) {
    if (Status host = kept_.payload.bring_to_host(); !host.ok()) return leave(host);
  }
  collectives::Backend::Parcel taken;
  const Status status =
      view.backend->hand_over(view.position - 1, view.handover, takes ? taken : kept_);
  if (!status.ok()) return status;
  if (takes) {
    // A part of a reduce_scatter is this rank's own: it was complete before the operation was.
    if (work_.in_hand) std::swap(taken.payload, work_);
    kept_ = std::move(taken);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ledger_.handed_over();
  }
  if (takes) note_resumed();
  return {};
}

void Lane::complete() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ledger_.completed();
  }
  note_resumed();
}

void Lane::note_resumed() {
  if (std::exchange(resumed_, true)) return;
  if (callbacks_.on_resumed) callbacks_.on_resumed();
}

Lane::Attempt Lane::deliver(Operation& operation, const std::shared_ptr<const Members>& members) {
  Attempt result;
  result.final = true;
  if (kept_.error.empty()) {
    operation.unpack(*members, kept_.payload);
    kept_.payload.direct.clear();
    kept_.payload.on_device = nullptr;
    result.contributors = members->contributors();
  } else {
    result.status = unpack_error(kept_.error, members->generation);
  }
  attempted_by_.reset();
  return result;
}

Lane::Attempt Lane::end_as_lost(LaneView& view) {
  collectives::Payload nothing;
  const Status met =
      view.backend->run(position(), performed_by(*view.backend, lost_call()), nothing);
  if (met.code() == Code::kMismatch) return end_in_error(met);
  if (!met.ok()) return interrupted(view, met);
  return end_in_error(Status(Code::kRootLost,
                             "the root of the broadcast died before anybody had all of its data; "
                             "choose a root of the present view and call again",
                             -1, view.generation()));
}

/// The operation is complete, with `error` as its result on every rank.
Lane::Attempt Lane::end_in_error(const Status& error) {
  kept_.error = pack_error(error);
  complete();
  attempted_by_.reset();
  Attempt result;
  result.final = true;
  result.status = error;
  return result;
}

Lane::Attempt Lane::interrupted(const LaneView& view, const Status& failure) {
  log::debug("{}: operation {} of generation {} interrupted: {}", name_, position(),
             view.generation(), failure.message());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
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
