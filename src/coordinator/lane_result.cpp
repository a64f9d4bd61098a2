// The result of a lane's latest operation: kept, handed over, checked, and delivered to the caller.
#include <new>
#include <string>
#include <utility>

#include "coordinator/lane.hpp"

namespace elastic::coordinator {

namespace {

transport::Fingerprint fingerprint_of(const collectives::Backend& backend, Operation& operation,
                                      const Members& members) {
  return transport::performed_by(backend.name(), operation.call(members).fingerprint);
}

/// An operation's error, encoded for a parcel: the code, then the text.
std::string pack_error(const Status& error) {
  return static_cast<char>(error.code()) + error.message();
}
Status unpack_error(const std::string& packed, std::uint64_t generation) {
  return Status(static_cast<Code>(packed.front()), packed.substr(1), -1, generation);
}

}  // namespace

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
  collectives::Backend::Parcel taken;
  const Status status =
      view.backend->hand_over(view.position - 1, view.handover, takes ? taken : kept_);
  if (!status.ok()) return status;
  if (takes) {
    // A call whose results differ by rank completes this rank's in its own work buffer before its
    // barrier.
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

}  // namespace elastic::coordinator
