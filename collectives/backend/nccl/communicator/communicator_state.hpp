#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/status.hpp"

namespace elastic::collectives::nccl {

/// A decided view, with this worker's rank in it. Only decided views have communicators: an id of
/// NCCL that no rank uses leaks a thread and a port.
struct DecidedView {
  std::uint64_t generation = 0;
  int rank = 0;
  int size = 1;
};

struct Deadlines {
  Duration start = std::chrono::seconds(60);  ///< for all ranks to know that all have made it
  /// Limit for an overdue call of NCCL to return, and again for ncclCommAbort to release the
  /// communicator. An abort waits for a rank of the same host that does not answer until its
  /// launcher has killed it, for which the server has to give it up first: silence counts after
  /// `--evict-after-ms` (0.5 s), and on an overloaded machine after ten times that; a report is
  /// awaited for 1 s, and then for as much longer. The kernel needs seconds more to take apart a
  /// process that has tens of GiB of pinned memory and of a device. So 5.5 s, and as long again,
  /// and some.
  Duration abort = std::chrono::seconds(15);
  /// Limit for NCCL to shrink a communicator; then the ranks make a new one. All ranks begin at
  /// about the same time, and NCCL does not tell them where one has failed.
  Duration shrink = std::chrono::seconds(10);
  /// A retired communicator is given back after this time, unless NCCL is shrinking it: it may hold
  /// up another rank's abort until then, of which `abort` is the limit. Time for an operation on
  /// tensors on devices, in a training step that is not very long. Once it is shrunk, time for the
  /// ranks to tell each other.
  Duration kept = std::chrono::seconds(5);
};

enum class Phase : std::uint8_t {
  kNew,
  kMeeting,    ///< the ranks agree how NCCL makes it, and rank 0 sends the id to all ranks
  kReleasing,  ///< the communicator that could be shrunk ends first, and what came of shrinking it
  kStarting,   ///< NCCL makes the communicator
  kAgreeing,   ///< the ranks tell each other whether NCCL has made it
  kReady,      ///< calls may be made
  kRetired,    ///< its view has ended; kept without use, for a communicator that is shrunk from it
  kDying,      ///< dead; a call of NCCL is still under way
  kAborting,   ///< dead; ncclCommAbort is under way
  kEnded,      ///< NCCL has released all of its resources
  kStuck,      ///< a call of NCCL does not return: the process has to end
};
const char* name(Phase phase) noexcept;

/// The next step. A thread that may be left behind carries out kAbort; the thread that brought the
/// event carries out the others.
enum class Action : std::uint8_t {
  kNothing,
  kMakeId,   ///< ncclGetUniqueId
  kMeet,     ///< send the id, or the reason why there is none, to all ranks
  kInit,     ///< ncclCommInitRankConfig
  kShrink,   ///< ncclCommShrink
  kRelease,  ///< ncclCommAbort for the communicator that could be shrunk, then for what came of it
  kPoll,     ///< ncclCommGetAsyncError, after a pause
  kAgree,    ///< send `own_failure` to all ranks
  kAbort,
};

/// How NCCL makes a communicator, the same on all ranks.
enum class Making : std::uint8_t {
  kInit,
  kInitWithoutId,  ///< the same, but rank 0 has yet to make the id
  kShrink,         ///< from the retired communicator that each rank has
};

struct Decision {
  Action action = Action::kNothing;
  std::string reason;
  bool call_off = false;  ///< cancel the exchange between the ranks that is under way
};

/// The outcome of a call of NCCL.
struct Answer {
  enum class Progress : std::uint8_t { kDone, kUnderWay, kFailed };
  Progress progress = Progress::kDone;
  Status failure;  ///< of kFailed
  /// There is a communicator that has to be released, be it the one that can be shrunk.
  bool exists = false;
};

/// The life of a communicator of NCCL as a state machine without NCCL: each event gives the next
/// step and its reason. It holds NCCL's rules: one call at a time, and ncclCommAbort only when none
/// is under way. It also holds rules of this library: the first failure is the one reported, no
/// call begins after it, and every wait has a deadline. Not thread-safe: the caller locks.
class CommunicatorState {
 public:
  CommunicatorState(const DecidedView& view, const Deadlines& deadlines)
      : view_(view), deadlines_(deadlines) {}

  /// `offers`: this rank has a retired communicator, from which it could be shrunk.
  Decision begin(TimePoint now, bool offers = false);
  /// The exchange of the id ended, with a failure or `how` NCCL makes the communicator, the same on
  /// all ranks. A failure ends all communicators.
  Decision met(const Status& met, TimePoint now, Making how = Making::kInit);
  /// ok if a call that makes or ends the communicator may begin. Otherwise the reason, permanently.
  Status may_call() const;
  /// ok if the communicator may be used: all ranks have it.
  Status may_use() const;
  /// A call begins. `call` is a string literal. Requires `may_call`, and for a poll no other call
  /// under way (`in_call`), for other calls nothing in progress (`busy`).
  void call_begins(const char* call);
  Decision call_returned(const Answer& answer, TimePoint now);
  /// The ranks' answers in kAgree: ok, or the failure with the rank that had it.
  /// After a failure to shrink, all ranks meet again and make a new communicator.
  Decision agreed(const Status& agreed, TimePoint now);
  /// Its view has ended: keeps the communicator without use, if it is ready and NCCL is done with
  /// all calls. False: it is not, and nothing has changed. After Deadlines::kept it ends.
  bool retire(TimePoint now);
  /// It does not end by itself before `put_back`. \returns the time when it would have; nothing if
  /// it is not retired any more.
  std::optional<TimePoint> borrow();
  /// It ends by itself at `until`, if it is still retired.
  void put_back(TimePoint until);
  /// The view is to change, a peer is lost, and so on: no call begins any more. Only the first
  /// reason counts.
  Decision die(const Status& why, TimePoint now);
  /// ncclCommAbort has returned.
  Decision given_back(TimePoint now);
  /// ncclCommAbort could not be called.
  Decision not_given_back(const std::string& why);
  /// Handles deadlines that have passed at `now`.
  Decision tick(TimePoint now);
  /// The next deadline, for `tick`; TimePoint::max() if there is none.
  TimePoint due() const { return due_; }

  Phase phase() const { return phase_; }
  bool in_call() const { return call_ != nullptr; }
  /// A call is under way, or NCCL still works on the last one in the background.
  bool busy() const { return in_call() || in_progress_; }
  bool dead() const;
  /// Whether the state is final.
  bool over() const { return phase_ == Phase::kEnded || phase_ == Phase::kStuck; }
  /// The reason of its death; ok while it lives.
  const Status& failure() const { return failure_; }
  /// This rank's answer in kAgree: ok, or the reason why it has no communicator.
  const Status& own_failure() const { return own_failure_; }
  /// When `over`: ok, or the error that this process can never use its device again.
  const Status& verdict() const { return verdict_; }

 private:
  Decision enter(Phase phase, Duration time, TimePoint now, Action action, std::string reason);
  Decision start_returned(const Answer& answer, TimePoint now);
  Decision meet(TimePoint now);
  Decision start(TimePoint now, Making how);
  Decision release(TimePoint now, std::string reason);
  Decision released(TimePoint now);
  Decision give_back(TimePoint now, const std::string& reason);
  Decision end(const std::string& reason);
  Decision stuck(const std::string& why);
  std::string generation() const;

  const DecidedView view_;
  const Deadlines deadlines_;
  Phase phase_ = Phase::kNew;
  TimePoint due_ = TimePoint::max();
  TimePoint start_due_;  // deadline for all ranks to know that all have made it
  TimePoint start_by_;   // deadline for NCCL to make the communicator
  bool offers_ = false;  // there is a retired communicator, which has to be released
  Making making_ = Making::kInit;
  const char* call_ = nullptr;  // name of the call under way
  bool in_progress_ = false;
  bool exists_ = false;
  Status failure_;
  Status own_failure_;
  Status verdict_;
};

}  // namespace elastic::collectives::nccl
