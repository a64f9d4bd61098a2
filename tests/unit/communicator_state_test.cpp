// The decisions about an NCCL communicator, step by step with a clock that the test sets.
#include "collectives/backend/nccl/communicator/communicator_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::collectives::nccl {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Progress = Answer::Progress;

const Answer kDone{Progress::kDone, {}, true};
const Answer kUnderWay{Progress::kUnderWay, {}, true};

Answer failed(bool exists = true) {
  return {Progress::kFailed, Status(Code::kPeerLost, "the cable"), exists};
}

class CommunicatorStateTest : public ::testing::Test {
 protected:
  CommunicatorState state(int rank = 1) const { return {{7, rank, 2}, {seconds(10), seconds(2)}}; }
  /// One that NCCL is making.
  CommunicatorState starting() const {
    CommunicatorState state = this->state();
    state.begin(now_);
    state.met({}, now_);
    return state;
  }
  CommunicatorState agreeing() const {
    CommunicatorState state = starting();
    EXPECT_EQ(called(state, "init", kDone).action, Action::kAgree);
    return state;
  }
  CommunicatorState ready() const {
    CommunicatorState state = agreeing();
    state.agreed({}, now_);
    EXPECT_EQ(state.phase(), Phase::kReady);
    return state;
  }
  Decision called(CommunicatorState& state, const char* call, const Answer& answer) const {
    EXPECT_TRUE(state.may_call().ok());
    state.call_begins(call);
    return state.call_returned(answer, now_);
  }
  /// That nothing is called any more, for that reason.
  static void is_dead(const CommunicatorState& state, Code code) {
    EXPECT_TRUE(state.dead());
    EXPECT_EQ(state.may_call().code(), code);
    EXPECT_EQ(state.failure().code(), code);
  }

  TimePoint now_{};
  const Status aborted_{Code::kAborted, "another view"};
  const Status lost_{Code::kPeerLost, "rank 0"};
};

TEST_F(CommunicatorStateTest, OnlyRankZeroMakesAnId) {
  CommunicatorState first = state(0);
  EXPECT_EQ(first.begin(now_).action, Action::kMakeId);
  EXPECT_EQ(called(first, "id", kDone).action, Action::kMeet);
  CommunicatorState other = state(1);
  EXPECT_EQ(other.begin(now_).action, Action::kMeet);
  EXPECT_EQ(other.begin(now_).action, Action::kNothing) << "once";
}

TEST_F(CommunicatorStateTest, TellsTheOthersThatThereIsNoId) {
  CommunicatorState first = state(0);
  first.begin(now_);
  EXPECT_EQ(called(first, "id", failed(false)).action, Action::kMeet);
  EXPECT_EQ(first.own_failure().message(), "the cable");
  EXPECT_EQ(first.met(first.own_failure(), now_).action, Action::kNothing);
  EXPECT_EQ(first.phase(), Phase::kEnded) << "there is nothing to give back";
  is_dead(first, Code::kPeerLost);
}

TEST_F(CommunicatorStateTest, PollsUntilNcclIsDone) {
  CommunicatorState state = starting();
  EXPECT_EQ(called(state, "init", kUnderWay).action, Action::kPoll);
  now_ += seconds(9);
  EXPECT_EQ(called(state, "poll", kUnderWay).action, Action::kPoll);
  EXPECT_EQ(called(state, "poll", kDone).action, Action::kAgree);
  EXPECT_TRUE(state.own_failure().ok());
}

TEST_F(CommunicatorStateTest, IsNotReadyBeforeAllAgree) {
  CommunicatorState state = agreeing();
  EXPECT_EQ(state.phase(), Phase::kAgreeing);
  EXPECT_TRUE(state.may_call().ok());
  EXPECT_EQ(state.may_use().code(), Code::kUnavailable);
  EXPECT_TRUE(ready().may_use().ok());
  EXPECT_EQ(state.agreed(lost_, now_).action, Action::kAbort);
  is_dead(state, Code::kPeerLost);
}

TEST_F(CommunicatorStateTest, SaysThatItWasNotMadeInTime) {
  CommunicatorState state = starting();
  called(state, "init", kUnderWay);
  now_ += seconds(10);
  const Decision decision = called(state, "poll", kUnderWay);
  EXPECT_EQ(decision.action, Action::kAgree) << "so that the others learn it";
  EXPECT_EQ(state.own_failure().code(), Code::kTimeout);
  EXPECT_THAT(decision.reason, AllOf(HasSubstr("generation 7"), HasSubstr("within 10000 ms")));
}

TEST_F(CommunicatorStateTest, GivesBackWhatExistsAndNothingElse) {
  CommunicatorState without = starting();
  EXPECT_EQ(called(without, "init", failed(false)).action, Action::kAgree);
  EXPECT_EQ(without.agreed(without.own_failure(), now_).action, Action::kNothing);
  EXPECT_EQ(without.phase(), Phase::kEnded);
  CommunicatorState with = starting();
  EXPECT_EQ(called(with, "init", failed(true)).action, Action::kAgree);
  EXPECT_EQ(with.agreed(with.own_failure(), now_).action, Action::kAbort);
}

TEST_F(CommunicatorStateTest, DoesNotWaitForTheRanksWithoutAnEnd) {
  CommunicatorState meeting = state();
  meeting.begin(now_);
  EXPECT_EQ(meeting.due(), now_ + seconds(10));
  CommunicatorState met = agreeing();
  now_ += seconds(10);
  EXPECT_TRUE(meeting.tick(now_).call_off);
  EXPECT_EQ(meeting.phase(), Phase::kEnded);
  EXPECT_EQ(met.due(), now_ + seconds(10)) << "the others have until now to begin with that";
  now_ += seconds(10);
  const Decision decision = met.tick(now_);
  EXPECT_TRUE(decision.call_off);
  EXPECT_EQ(decision.action, Action::kAbort);
  is_dead(met, Code::kTimeout);
  EXPECT_EQ(met.agreed({}, now_).action, Action::kNothing) << "too late";
  EXPECT_EQ(met.phase(), Phase::kAborting);
}

TEST_F(CommunicatorStateTest, DoesNotWaitForInitWithoutAnEnd) {
  CommunicatorState state = starting();
  state.call_begins("ncclCommInitRankConfig");
  now_ += seconds(10);
  EXPECT_EQ(state.tick(now_).action, Action::kNothing);
  EXPECT_FALSE(state.dead());
  now_ += seconds(2);
  EXPECT_EQ(state.tick(now_).action, Action::kNothing) << "an abort is not allowed yet";
  EXPECT_EQ(state.phase(), Phase::kDying);
  EXPECT_THAT(state.failure().message(), HasSubstr("ncclCommInitRankConfig does not return"));
  now_ += seconds(2);
  state.tick(now_);
  EXPECT_EQ(state.phase(), Phase::kStuck);
  EXPECT_THAT(state.verdict().message(), HasSubstr("this worker has to exit"));
  EXPECT_EQ(state.call_returned(kDone, now_).action, Action::kAbort) << "after all";
  state.given_back(now_);
  EXPECT_EQ(state.phase(), Phase::kStuck) << "a caller may have acted on it";
}

TEST_F(CommunicatorStateTest, WhateverFailsAReadyOneEndsIt) {
  CommunicatorState state = ready();
  EXPECT_EQ(called(state, "poll", kDone).action, Action::kNothing);
  EXPECT_EQ(called(state, "allreduce", kUnderWay).action, Action::kPoll);
  EXPECT_TRUE(state.busy());
  EXPECT_FALSE(state.in_call()) << "NCCL can be asked, and nothing else";
  EXPECT_EQ(called(state, "poll", failed()).action, Action::kAbort);
  is_dead(state, Code::kPeerLost);
}

TEST_F(CommunicatorStateTest, DiesAtAnyTimeOnceAndForTheFirstReason) {
  std::vector<CommunicatorState> states{state(), starting(), agreeing(), ready()};
  states.front().begin(now_);
  called(states[1], "init", kUnderWay);
  const std::vector<bool> call_off{true, false, true, false};
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Decision decision = states[i].die(aborted_, now_);
    EXPECT_EQ(decision.action, i == 0 ? Action::kNothing : Action::kAbort) << i;
    EXPECT_EQ(decision.call_off, call_off[i]) << i;
    EXPECT_EQ(states[i].die(lost_, now_).action, Action::kNothing);
    is_dead(states[i], Code::kAborted);
  }
}

TEST_F(CommunicatorStateTest, AbortsWhenTheCallUnderWayHasReturned) {
  CommunicatorState state = ready();
  state.call_begins("allreduce");
  EXPECT_EQ(state.die(aborted_, now_).action, Action::kNothing);
  EXPECT_EQ(state.phase(), Phase::kDying);
  EXPECT_FALSE(state.may_call().ok());
  EXPECT_EQ(state.call_returned(failed(), now_).action, Action::kAbort);
  EXPECT_EQ(state.failure().code(), Code::kAborted);
  EXPECT_EQ(state.given_back(now_).action, Action::kNothing);
  EXPECT_EQ(state.phase(), Phase::kEnded);
  EXPECT_TRUE(state.verdict().ok());
}

TEST_F(CommunicatorStateTest, SaysThatAnAbortDoesNotReturn) {
  CommunicatorState state = ready();
  state.die(aborted_, now_);
  EXPECT_EQ(state.due(), now_ + seconds(2));
  now_ += seconds(1);
  state.tick(now_);
  EXPECT_EQ(state.phase(), Phase::kAborting);
  now_ += seconds(1);
  state.tick(now_);
  EXPECT_EQ(state.phase(), Phase::kStuck);
  EXPECT_EQ(state.due(), TimePoint::max());
  EXPECT_EQ(state.verdict().code(), Code::kUnavailable);
  EXPECT_THAT(state.verdict().message(),
              AllOf(HasSubstr("ncclCommAbort has not returned within 2000 ms"),
                    HasSubstr("generation 7"), HasSubstr("come back as a joiner")));
}

TEST_F(CommunicatorStateTest, SaysThatNoThreadCouldAbort) {
  CommunicatorState state = ready();
  state.die(aborted_, now_);
  state.not_given_back("no memory");
  EXPECT_THAT(state.verdict().message(), AllOf(HasSubstr("no memory"), HasSubstr("has to exit")));
}

class ShrinkStateTest : public CommunicatorStateTest {
 protected:
  /// One that NCCL shrinks, within three seconds.
  CommunicatorState shrinking(int rank = 1) const {
    CommunicatorState state{{7, rank, 2}, {seconds(10), seconds(2), seconds(3)}};
    EXPECT_EQ(state.begin(now_, /*offers=*/true).action, Action::kMeet) << "nobody makes an id";
    EXPECT_EQ(state.met({}, now_, Making::kShrink).action, Action::kShrink);
    return state;
  }
  /// Ends that and the parent, after it has failed on some rank.
  Decision release(CommunicatorState& state) const {
    EXPECT_EQ(state.agreed(lost_, now_).action, Action::kRelease);
    EXPECT_EQ(state.phase(), Phase::kReleasing);
    return called(state, "ncclCommAbort", {Progress::kDone, {}, false});
  }
};

TEST_F(ShrinkStateTest, IsReadyWhereAllHaveShrunkIt) {
  CommunicatorState state = shrinking();
  EXPECT_EQ(called(state, "ncclCommShrink", kUnderWay).action, Action::kPoll);
  EXPECT_EQ(called(state, "poll", kDone).action, Action::kAgree);
  state.agreed({}, now_);
  EXPECT_EQ(state.phase(), Phase::kReady);
  EXPECT_EQ(state.die(aborted_, now_).action, Action::kAbort);
}

TEST_F(ShrinkStateTest, IsMadeAnewAfterAFailure) {
  for (const int rank : {0, 1}) {
    CommunicatorState state = shrinking(rank);
    EXPECT_EQ(called(state, "ncclCommShrink", failed()).action, Action::kAgree);
    EXPECT_EQ(release(state).action, rank == 0 ? Action::kMakeId : Action::kMeet);
    EXPECT_TRUE(state.own_failure().ok());
    EXPECT_EQ(state.phase(), Phase::kMeeting);
    if (rank == 0) {
      EXPECT_EQ(called(state, "id", {}).action, Action::kMeet);
    }
    EXPECT_EQ(state.met({}, now_, Making::kInit).action, Action::kInit);
    EXPECT_EQ(called(state, "init", kDone).action, Action::kAgree);
    EXPECT_EQ(state.agreed(lost_, now_).action, Action::kAbort) << "not a second time";
  }
}

TEST_F(ShrinkStateTest, IsMadeAnewWhereNcclTakesTooLong) {
  CommunicatorState state = shrinking();
  EXPECT_EQ(called(state, "ncclCommShrink", kUnderWay).action, Action::kPoll);
  now_ += seconds(3);
  EXPECT_EQ(called(state, "poll", kUnderWay).action, Action::kAgree);
  EXPECT_THAT(state.own_failure().message(), HasSubstr("within 3000 ms"));
  release(state);
  EXPECT_FALSE(state.busy()) << "what was under way has ended with the parent";
  EXPECT_EQ(state.due(), now_ + seconds(10)) << "all of the time is left";
}

TEST_F(ShrinkStateTest, ReleasesItsParentFirstWhereARankHasNone) {
  CommunicatorState state{{7, 1, 2}, {seconds(10), seconds(2), seconds(3)}};
  state.begin(now_, true);
  EXPECT_EQ(state.met({}, now_, Making::kInit).action, Action::kRelease);
  EXPECT_EQ(called(state, "ncclCommAbort", {}).action, Action::kInit) << "rank 0 has sent an id";
  CommunicatorState without_id{{7, 1, 2}, {seconds(10), seconds(2), seconds(3)}};
  without_id.begin(now_, true);
  EXPECT_EQ(without_id.met({}, now_, Making::kInitWithoutId).action, Action::kRelease);
  EXPECT_EQ(called(without_id, "ncclCommAbort", {}).action, Action::kMeet);
}

TEST_F(ShrinkStateTest, ReleasesItsParentWhenItDies) {
  CommunicatorState meeting{{7, 1, 2}, {seconds(10), seconds(2), seconds(3)}};
  meeting.begin(now_, true);
  EXPECT_EQ(meeting.die(aborted_, now_).action, Action::kAbort);
  CommunicatorState state = shrinking();
  called(state, "ncclCommShrink", kUnderWay);
  EXPECT_EQ(state.die(aborted_, now_).action, Action::kAbort);
}

TEST_F(ShrinkStateTest, DoesNotWaitForTheEndOfItsParentForEver) {
  CommunicatorState state = shrinking();
  called(state, "ncclCommShrink", failed());
  EXPECT_EQ(state.agreed(lost_, now_).action, Action::kRelease);
  state.call_begins("ncclCommAbort");
  now_ += seconds(2);
  state.tick(now_);
  EXPECT_EQ(state.phase(), Phase::kDying);
  now_ += seconds(2);
  state.tick(now_);
  EXPECT_EQ(state.phase(), Phase::kStuck);
  EXPECT_THAT(state.verdict().message(), HasSubstr("this worker has to exit"));
}

TEST_F(ShrinkStateTest, RetiresOnlyWhenItIsReadyAndIdle) {
  CommunicatorState starting = this->starting();
  EXPECT_FALSE(starting.retire(now_));
  CommunicatorState state = ready();
  called(state, "allreduce", kUnderWay);
  EXPECT_FALSE(state.retire(now_));
  called(state, "poll", kDone);
  EXPECT_TRUE(state.retire(now_));
  EXPECT_FALSE(state.retire(now_));
  is_dead(state, Code::kAborted);
  EXPECT_EQ(state.die(lost_, now_).action, Action::kAbort);
  EXPECT_EQ(state.phase(), Phase::kAborting);
}

TEST_F(ShrinkStateTest, EndsByItselfWhereItIsNotBorrowed) {
  CommunicatorState state = ready();
  ASSERT_TRUE(state.retire(now_));
  EXPECT_EQ(state.due(), now_ + Deadlines().kept);
  EXPECT_EQ(state.borrow(), now_ + Deadlines().kept);
  EXPECT_EQ(state.due(), TimePoint::max());
  state.put_back(now_ + seconds(1));
  EXPECT_EQ(state.tick(now_ + seconds(1)).action, Action::kAbort);
  EXPECT_FALSE(state.borrow()) << "it ends already";
  const TimePoint due = state.due();
  state.put_back(now_ + seconds(100));
  EXPECT_EQ(state.due(), due);
}

}  // namespace
}  // namespace elastic::collectives::nccl
