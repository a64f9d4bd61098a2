#include "collectives/backend/nccl/communicator/communicator_state.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace elastic::collectives::nccl {

namespace {

std::string text(Duration time) {
  return std::to_string(std::chrono::duration_cast<Milliseconds>(time).count()) + " ms";
}

}  // namespace

const char* name(Phase phase) noexcept {
  switch (phase) {
    case Phase::kNew:
      return "new";
    case Phase::kMeeting:
      return "meeting";
    case Phase::kReleasing:
      return "releasing";
    case Phase::kStarting:
      return "starting";
    case Phase::kAgreeing:
      return "agreeing";
    case Phase::kReady:
      return "ready";
    case Phase::kRetired:
      return "retired";
    case Phase::kDying:
      return "dying";
    case Phase::kAborting:
      return "aborting";
    case Phase::kEnded:
      return "ended";
    case Phase::kStuck:
      return "stuck";
  }
  return "?";
}

std::string CommunicatorState::generation() const {
  return "generation " + std::to_string(view_.generation);
}

bool CommunicatorState::dead() const {
  return phase_ == Phase::kRetired || phase_ == Phase::kDying || phase_ == Phase::kAborting ||
         over();
}

Decision CommunicatorState::enter(Phase phase, Duration time, TimePoint now, Action action,
                                  std::string reason) {
  phase_ = phase;
  due_ = now + time;
  return {action, std::move(reason)};
}

Decision CommunicatorState::begin(TimePoint now, bool offers) {
  if (phase_ != Phase::kNew) return {};
  offers_ = exists_ = offers;
  return meet(now);
}

/// A rank that offers a communicator makes no id, which no rank would use if all offer one.
Decision CommunicatorState::meet(TimePoint now) {
  start_due_ = now + deadlines_.start;
  if (offers_) {
    return enter(Phase::kMeeting, deadlines_.start, now, Action::kMeet,
                 generation() + " is decided, and its communicator may be shrunk");
  }
  if (view_.rank == 0) {
    return enter(Phase::kMeeting, deadlines_.start, now, Action::kMakeId,
                 generation() + " is decided, and rank 0 makes the id");
  }
  return enter(Phase::kMeeting, deadlines_.start, now, Action::kMeet,
               generation() + " is decided, and rank 0 hands out the id");
}

Decision CommunicatorState::met(const Status& met, TimePoint now, Making how) {
  if (phase_ != Phase::kMeeting) return {};
  if (!met.ok()) return die(met, now);
  making_ = how;
  if (how != Making::kShrink && offers_) {
    return release(now, "a rank has no communicator that could be shrunk");
  }
  return start(now, how);
}

Decision CommunicatorState::start(TimePoint now, Making how) {
  if (how == Making::kInitWithoutId) return meet(now);
  phase_ = Phase::kStarting;
  start_by_ = start_due_;
  if (how == Making::kShrink) start_by_ = std::min(start_due_, now + deadlines_.shrink);
  due_ = start_by_ + deadlines_.abort;  // for a call that is overdue to return
  if (how == Making::kShrink) return {Action::kShrink, "all ranks have one to be shrunk"};
  return {Action::kInit, "the id is here"};
}

Decision CommunicatorState::release(TimePoint now, std::string reason) {
  in_progress_ = false;  // it ends with the communicators
  return enter(Phase::kReleasing, deadlines_.abort, now, Action::kRelease, std::move(reason));
}

Decision CommunicatorState::released(TimePoint now) {
  offers_ = false;
  own_failure_ = {};
  return start(now, making_);
}

bool CommunicatorState::retire(TimePoint now) {
  if (phase_ != Phase::kReady || busy()) return false;
  phase_ = Phase::kRetired;
  due_ = now + deadlines_.kept;
  failure_ = Status(Code::kAborted, "the view is being changed");
  return true;
}

std::optional<TimePoint> CommunicatorState::borrow() {
  if (phase_ != Phase::kRetired) return std::nullopt;
  return std::exchange(due_, TimePoint::max());
}

void CommunicatorState::put_back(TimePoint until) {
  if (phase_ == Phase::kRetired) due_ = until;
}

Status CommunicatorState::may_call() const {
  if (dead()) {
    if (!failure_.ok()) return failure_;
    return Status(Code::kAborted, "the communicator of " + generation() + " has ended", -1,
                  view_.generation);
  }
  return {};
}

Status CommunicatorState::may_use() const {
  if (Status may = may_call(); !may.ok() || phase_ == Phase::kReady) return may;
  return Status(
      Code::kUnavailable,
      "the communicator of " + generation() + " is not ready for use (" + name(phase_) + ")", -1,
      view_.generation);
}

void CommunicatorState::call_begins(const char* call) {
  assert(call_ == nullptr);
  call_ = call;
}

Decision CommunicatorState::call_returned(const Answer& answer, TimePoint now) {
  call_ = nullptr;
  in_progress_ = answer.progress == Answer::Progress::kUnderWay;
  exists_ = answer.exists;
  switch (phase_) {
    case Phase::kMeeting:
      own_failure_ = answer.failure;  // the other ranks wait for an id, or for this
      return {Action::kMeet, answer.failure.ok() ? "the id is made" : "there is no id"};
    case Phase::kReleasing:
      return released(now);
    case Phase::kStarting:
      return start_returned(answer, now);
    case Phase::kDying:
    case Phase::kStuck:  // after all; the verdict stays
      return give_back(now, "the call that was under way has returned");
    default:
      break;
  }
  if (answer.progress == Answer::Progress::kFailed) return die(answer.failure, now);
  if (answer.progress == Answer::Progress::kUnderWay) return {Action::kPoll, "NCCL is not done"};
  return {};
}

Decision CommunicatorState::start_returned(const Answer& answer, TimePoint now) {
  if (answer.progress == Answer::Progress::kUnderWay && now < start_by_) {
    return {Action::kPoll, "NCCL waits for other ranks"};
  }
  if (answer.progress == Answer::Progress::kFailed) {
    own_failure_ = answer.failure;
  } else if (answer.progress == Answer::Progress::kUnderWay) {
    const bool shrinks = making_ == Making::kShrink;
    own_failure_ = Status(
        Code::kTimeout,
        "NCCL has not made the communicator of " + generation() + " within " +
            text(shrinks ? std::min(deadlines_.shrink, deadlines_.start) : deadlines_.start) +
            ": a rank did not come to it",
        -1, view_.generation);
  }
  // The other ranks may first have to wait for their own deadlines.
  return enter(Phase::kAgreeing, deadlines_.start, std::max(now, start_by_), Action::kAgree,
               own_failure_.ok() ? "NCCL has made it" : own_failure_.message());
}

Decision CommunicatorState::agreed(const Status& agreed, TimePoint now) {
  if (phase_ != Phase::kAgreeing) return {};
  if (!agreed.ok() && making_ == Making::kShrink) {
    making_ = Making::kInitWithoutId;
    return release(now, "it is not shrunk, but made anew: " + agreed.message());
  }
  if (!agreed.ok()) return die(agreed, now);
  phase_ = Phase::kReady;
  due_ = TimePoint::max();
  return {Action::kNothing, "all ranks have it"};
}

Decision CommunicatorState::die(const Status& why, TimePoint now) {
  if (phase_ == Phase::kRetired) return give_back(now, why.message());
  if (dead()) return {};
  if (failure_.ok()) failure_ = why;
  const bool exchanging = phase_ == Phase::kMeeting || phase_ == Phase::kAgreeing;
  if (in_call()) {
    Decision decision = enter(Phase::kDying, deadlines_.abort, now, Action::kNothing,
                              why.message() + "; " + call_ + " is under way");
    decision.call_off = exchanging;
    return decision;
  }
  Decision decision = give_back(now, why.message());
  decision.call_off = exchanging;
  return decision;
}

Decision CommunicatorState::give_back(TimePoint now, const std::string& reason) {
  if (!exists_) return end(reason);
  if (phase_ == Phase::kStuck) return {Action::kAbort, reason};
  return enter(Phase::kAborting, deadlines_.abort, now, Action::kAbort, reason);
}

Decision CommunicatorState::given_back(TimePoint /*now*/) {
  if (phase_ == Phase::kStuck) return {Action::kNothing, "given back after all"};
  return end("NCCL has given it back");
}

Decision CommunicatorState::not_given_back(const std::string& why) {
  return over() ? Decision{} : stuck(why);
}

Decision CommunicatorState::tick(TimePoint now) {
  if (now < due_) return {};
  const std::string late = "within " + text(deadlines_.abort);
  switch (phase_) {
    case Phase::kReleasing:
      return die(Status(Code::kTimeout,
                        "ncclCommAbort of the communicator before " + generation() +
                            " has not returned " + late,
                        -1, view_.generation),
                 now);
    case Phase::kMeeting:
    case Phase::kStarting:
    case Phase::kAgreeing:
      return die(Status(Code::kTimeout,
                        "there is no communicator for " + generation() + " within " +
                            text(deadlines_.start) +
                            (in_call() ? std::string(": ") + call_ + " does not return"
                                       : std::string(": the ranks have not all said they have it")),
                        -1, view_.generation),
                 now);
    case Phase::kRetired:
      return give_back(now, "it was kept for too long");
    case Phase::kDying:
      return stuck(std::string(call_) + ", which was under way, has not returned " + late +
                   ", and until then NCCL allows for no abort");
    case Phase::kAborting:
      return stuck("ncclCommAbort has not returned " + late);
    default:
      return {};
  }
}

Decision CommunicatorState::end(const std::string& reason) {
  phase_ = Phase::kEnded;
  due_ = TimePoint::max();
  return {Action::kNothing, reason};
}

Decision CommunicatorState::stuck(const std::string& why) {
  phase_ = Phase::kStuck;
  due_ = TimePoint::max();
  verdict_ = Status(Code::kUnavailable,
                    why + ". Its memory on the device (" + generation() +
                        ") stays taken: this worker has to exit, and can come back as a joiner",
                    -1, view_.generation);
  if (failure_.ok()) failure_ = verdict_;
  return {Action::kNothing, verdict_.message()};
}

}  // namespace elastic::collectives::nccl
