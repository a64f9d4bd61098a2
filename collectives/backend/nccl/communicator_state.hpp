#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/status.hpp"

namespace elastic::collectives::nccl {

/// A view that has been decided, as this worker sees it. There is no communicator for any other: an
/// id that nobody comes to leaves a thread and a port behind.
struct DecidedView {
  std::uint64_t generation = 0;
  int rank = 0;
  int size = 1;
};

struct Deadlines {
  Duration start = std::chrono::seconds(60);  ///< until all ranks know that all have begun
  /// For NCCL to come back from a call that is overdue, and as long again from giving back what the
  /// communicator has.
  Duration abort = std::chrono::seconds(5);
};

enum class Phase : std::uint8_t {
  kNew,
  kMeeting,   ///< the id goes to all ranks
  kStarting,  ///< NCCL makes the communicator
  kAgreeing,  ///< the ranks tell each other whether it did
  kReady,     ///< calls may be made
  kDying,     ///< dead; a call of NCCL is still under way
  kAborting,  ///< dead; ncclCommAbort is under way
  kEnded,     ///< NCCL has nothing of it any more
  kStuck,     ///< NCCL does not come back: the process has to end
};
const char* name(Phase phase) noexcept;

/// What is to be done next. kAbort belongs on a thread that may be left behind; the others are for
/// who brought the event.
enum class Action : std::uint8_t {
  kNothing,
  kMakeId,  ///< ncclGetUniqueId
  kMeet,    ///< hand the id, or why there is none, to all ranks
  kInit,    ///< ncclCommInitRankConfig
  kPoll,    ///< ncclCommGetAsyncError, after a pause
  kAgree,   ///< tell all ranks `own_failure`
  kAbort,
};

struct Decision {
  Action action = Action::kNothing;
  std::string reason;
  bool call_off = false;  ///< the ranks are exchanging something: that has to end
};

/// How a call of NCCL ended.
struct Answer {
  enum class Progress : std::uint8_t { kDone, kUnderWay, kFailed };
  Progress progress = Progress::kDone;
  Status failure;       ///< of kFailed
  bool exists = false;  ///< there is a communicator, to be given back some day
};

/// Life and death of a communicator of NCCL, without NCCL: what to do after each event, and why.
/// Holds what NCCL asks of its callers: one call at a time, and ncclCommAbort only when none is
/// under way; and what we do: whatever kills it first is the reason that stays, nothing is called
/// after that, and nothing is waited for without an end. Not locked: who drives it does that.
class CommunicatorState {
 public:
  CommunicatorState(const DecidedView& view, const Deadlines& deadlines)
      : view_(view), deadlines_(deadlines) {}

  Decision begin(TimePoint now);
  /// The id is here, or will never be: then every rank ends like this one.
  Decision met(const Status& met, TimePoint now);
  /// ok when a call may begin that belongs to its life or death. Otherwise why not, for good.
  Status may_call() const;
  /// ok when it may be used: all ranks have it.
  Status may_use() const;
  /// `call` is a string literal. Only when `may_call`; a poll when no call is under way, any other
  /// when nothing is in progress either.
  void call_begins(const char* call);
  Decision call_returned(const Answer& answer, TimePoint now);
  /// What all ranks said: ok, or whose communicator failed and how.
  Decision agreed(const Status& agreed, TimePoint now);
  /// The view is given up, a peer is lost, ...: from now on no call begins. Later reasons are
  /// ignored.
  Decision die(const Status& why, TimePoint now);
  /// ncclCommAbort has returned.
  Decision given_back(TimePoint now);
  /// It could not even be called.
  Decision not_given_back(const std::string& why);
  /// Time passes.
  Decision tick(TimePoint now);
  /// When `tick` has something to say; TimePoint::max() for never.
  TimePoint due() const { return due_; }

  Phase phase() const { return phase_; }
  bool in_call() const { return call_ != nullptr; }
  /// A call is under way, or NCCL is not done with what the last one began.
  bool busy() const { return in_call() || in_progress_; }
  bool dead() const;
  /// Nothing more will happen.
  bool over() const { return phase_ == Phase::kEnded || phase_ == Phase::kStuck; }
  /// Why it died; ok while it lives.
  const Status& failure() const { return failure_; }
  /// What this rank has to say in kAgree: ok, or why it has no communicator.
  const Status& own_failure() const { return own_failure_; }
  /// When it is over: ok, or that this process can never use its device again.
  const Status& verdict() const { return verdict_; }

 private:
  Decision enter(Phase phase, Duration time, TimePoint now, Action action, std::string reason);
  Decision start_returned(const Answer& answer, TimePoint now);
  Decision give_back(TimePoint now, const std::string& reason);
  Decision end(const std::string& reason);
  Decision stuck(const std::string& why);
  std::string generation() const;

  const DecidedView view_;
  const Deadlines deadlines_;
  Phase phase_ = Phase::kNew;
  TimePoint due_ = TimePoint::max();
  TimePoint start_by_;          // when NCCL has to have made it
  const char* call_ = nullptr;  // that is under way
  bool in_progress_ = false;
  bool exists_ = false;
  Status failure_;
  Status own_failure_;
  Status verdict_;
};

}  // namespace elastic::collectives::nccl
