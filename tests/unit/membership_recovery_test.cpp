#include <algorithm>
#include <iterator>

#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

constexpr Milliseconds kWindow{5000};

/// A server that was started again, with and without what it had written down.
class RecoveryTest : public MembershipTest {
 protected:
  RecoveredState journal() const { return {view(), view().generation + 1, journaled_end_}; }
};

TEST_F(RecoveryTest, MembersThatAllComeBackGoOnUndisturbed) {
  start_with({"a", "b"});
  restart(journal());
  EXPECT_EQ(phase(), Phase::kRecovering);
  come_back("b");
  come_back("a");
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_EQ(view().generation, 1U);
  EXPECT_EQ(count<Freeze>("a"), 0U);
}

TEST_F(RecoveryTest, WhoDoesNotComeBackCountsAsDead) {
  start_with({"a", "b", "c"});
  restart(journal());
  come_back("a");
  come_back("c");
  pass(kWindow - Milliseconds(1));
  EXPECT_EQ(phase(), Phase::kRecovering);
  pass(Milliseconds(2));
  report_all({"a", "c"});
  EXPECT_THAT(members(), ElementsAre("a", "c"));
  EXPECT_THAT(view().cause, HasSubstr("did not come back"));
  EXPECT_THAT(view().lost, ElementsAre("b"));
}

TEST_F(RecoveryTest, AGenerationThatMayHaveBeenGivenIsLeftOut) {
  start_with({"a", "b"});
  restart(journal());
  come_back("a");
  come_back("b");
  die("b");
  report_all({"a"});
  EXPECT_EQ(view().generation, 3U);
}

TEST_F(RecoveryTest, WhoMissedTheLastViewIsSentIt) {
  start_with({"a", "b", "c"});
  View next = view();
  next.generation = 2;
  next.members.pop_back();
  journal_.push_back(2);
  restart({next, 3});
  come_back("a", true);
  come_back("b", true);
  EXPECT_EQ(last<Announce>("a")->view->generation, 2U);
  EXPECT_EQ(phase(), Phase::kRunning) << "their standing still was for the view that they are sent";
  come_back("c", true);
  EXPECT_EQ(last<Farewell>("c")->reason, Farewell::Reason::kEvicted);
}

TEST_F(RecoveryTest, ARoundThatWasLostIsHeldAgain) {
  start_with({"a", "b", "c"});
  die("c");
  report("a");
  restart(journal());
  come_back("a", true);
  come_back("b");
  pass(kWindow);
  report_all({"a", "b"}, 1);
  EXPECT_THAT(members(), ElementsAre("a", "b"));
}

TEST_F(RecoveryTest, RoundsOfAnEarlierRunAreToldFromTheNewOnes) {
  start_with({"a", "b"});
  die("b");
  const std::uint64_t first = last<Freeze>("a")->round;
  restart(journal());
  come_back("a", true);
  pass(kWindow);
  EXPECT_GT(last<Freeze>("a")->round, first + 1000);
}

TEST_F(RecoveryTest, WithoutAJournalAMajorityIsBelieved) {
  start_with({"a", "b", "c"});
  restart({});
  come_back("a");
  EXPECT_EQ(phase(), Phase::kRecovering);
  come_back("b");
  pass(kWindow);
  report_all({"a", "b"});
  EXPECT_THAT(members(), ElementsAre("a", "b"));
  EXPECT_GT(view().generation, 65536U);
}

TEST_F(RecoveryTest, WithoutAJournalAMinorityIsNot) {
  start_with({"a", "b", "c", "d"});
  restart({});
  come_back("a");
  come_back("b");
  pass(Milliseconds(60000));
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_THAT(last<Fail>("a")->reason, HasSubstr("--adopt-any"));
}

TEST_F(RecoveryTest, AMinorityIsBelievedWhereThatWasAskedFor) {
  start_with({"a", "b", "c", "d"});
  options_.adopt_any = true;
  restart({});
  come_back("c");
  pass(kWindow);
  report_all({"c"});
  EXPECT_THAT(members(), ElementsAre("c"));
}

TEST_F(RecoveryTest, AnOldJournalIsNotBelievedAgainstTheMembers) {
  start_with({"a", "b", "c"});
  const RecoveredState old = journal();
  die("c");
  report_all({"a", "b"});
  restart(old);
  come_back("a");
  come_back("b");
  EXPECT_EQ(view().generation, 2U);
  EXPECT_EQ(phase(), Phase::kRunning);
}

TEST_F(RecoveryTest, ANewerViewOfOneDoesNotDisplaceAMajority) {
  start_with({"a", "b", "c"});
  View ahead = view();
  ahead.generation = 9;
  Register registration;
  registration.incarnation = "a";
  registration.generation = ahead.generation;
  restart({});
  connected_.insert("a");
  decide(Registered{registration});
  EXPECT_EQ(last<ViewRequest>("a")->generation, 9U);
  say("a", KnownView{std::make_shared<const View>(ahead)});
  come_back("b");
  come_back("c");
  EXPECT_EQ(last<Farewell>("a")->reason, Farewell::Reason::kEvicted);
  report_all({"b", "c"});
  EXPECT_THAT(members(), ElementsAre("b", "c"));
  EXPECT_GT(view().generation, 9U);
}

TEST_F(RecoveryTest, NewWorkersJoinOnceTheMembersAreKnown) {
  start_with({"a"});
  ready({"a"});
  options_.initial_np = 2;
  restart({});
  join("n");
  EXPECT_FALSE(last<Welcome>("n")->joining);
  come_back("a");
  EXPECT_TRUE(last<Welcome>("n")->joining);
  ready({"a", "n"});
  stop_at_boundary({"a"});
  EXPECT_THAT(members(), ElementsAre("a", "n"));
}

TEST_F(RecoveryTest, AJobWhoseMembersAreAllGoneBeginsAnew) {
  start_with({"a"});
  restart(journal());
  join("n");
  pass(options_.start_timeout);
  EXPECT_THAT(members(), ElementsAre("n"));
  EXPECT_EQ(view().generation, 3U);
}

/// The members may train on, and come back when the network does.
TEST_F(RecoveryTest, NewWorkersAloneBeginNothingForALongTime) {
  start_with({"a", "b"});
  ready({"a", "b"});
  restart(journal());
  join("n");
  pass(options_.start_timeout - Milliseconds(1));
  EXPECT_EQ(phase(), Phase::kRecovering);
  come_back("a");
  come_back("b");
  EXPECT_THAT(members(), ElementsAre("a", "b"));
}

/// It has waited for a view until it gave its membership up, and so have the others.
TEST_F(RecoveryTest, AFormerMemberShowsThatNoMemberIsLeft) {
  start_with({"a"});
  ready({"a"});
  restart(journal());
  join_again("n", 1);
  pass(kWindow);
  EXPECT_THAT(members(), ElementsAre("n"));
}

TEST_F(RecoveryTest, SuspicionsDuringItCount) {
  start_with({"a", "b"});
  restart(journal());
  come_back("a");
  say("a", Suspect{1, "b", "timed out"});
  come_back("b");
  EXPECT_EQ(phase(), Phase::kChanging);
  report_all({"a", "b"});
  EXPECT_THAT(members(), ElementsAre("a", "b"));
}

TEST_F(RecoveryTest, WhoIsSuspectedIsNotWaitedForAsLong) {
  start_with({"a", "b", "c"});
  restart(journal());
  come_back("a");
  say("a", Suspect{1, "b", "connection reset"});
  come_back("c");
  pass(Milliseconds(1499));
  EXPECT_EQ(phase(), Phase::kRecovering);
  pass(Milliseconds(2));
  report_all({"a", "c"});
  EXPECT_THAT(members(), ElementsAre("a", "c"));
}

/// The server died before it could announce the view to the joiner, which therefore dialed no
/// member.
TEST_F(RecoveryTest, AJoinerThatNeverHeardOfItsViewIsNotRefused) {
  start_with_joiner({"a", "b"}, "c");
  const std::uint64_t generation = view().generation;
  restart(journal());
  join("c");
  come_back("a");
  say("a", Suspect{generation, "c", "no answer", true});
  come_back("b");
  EXPECT_EQ(last<Announce>("c")->view->generation, generation);
  report_all({"a", "b", "c"}, 7, 1, true);
  EXPECT_FALSE(last<Refuse>("c"));
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
  EXPECT_GT(view().generation, generation) << "the link is made again";
}

TEST_F(RecoveryTest, AfterTheEndOfAJobAnotherOneBeginsAtOnce) {
  start_with({"a", "b"});
  say("a", Bye{true});
  say("b", Bye{true});
  restart(journal());
  EXPECT_EQ(phase(), Phase::kForming);
  come_back("a");
  EXPECT_EQ(count<Farewell>("a"), 2U) << "it may have missed the first";
  join("c");
  join("d");
  EXPECT_THAT(members(), ElementsAre("c", "d"));
  EXPECT_EQ(view().generation, 3U) << "none is given twice";
  come_back("b");
  EXPECT_EQ(last<Farewell>("b")->reason, Farewell::Reason::kDone);
  EXPECT_THAT(members(), ElementsAre("c", "d"));
  restart(journal());
  EXPECT_EQ(phase(), Phase::kRecovering) << "this one is not over";
}

/// The server that evicted it has been restarted since, and knows nothing of it.
TEST_F(RecoveryTest, AWorkerThatWasEvictedBeforeHearsOfTheEnd) {
  start_with({"a", "b"});
  die("b");
  report("a");
  restart(journal());
  come_back("a");
  say("a", Bye{true});
  EXPECT_EQ(phase(), Phase::kDone);
  join_again("b again", 1);
  EXPECT_EQ(last<Farewell>("b again")->reason, Farewell::Reason::kDone);
  restart(journal());
  join_again("b once more", 1);
  EXPECT_EQ(last<Farewell>("b once more")->reason, Farewell::Reason::kDone);
  join("c");
  join("d");
  EXPECT_THAT(members(), ElementsAre("c", "d")) << "another job";
}

TEST_F(RecoveryTest, AFailedJobIsOverToo) {
  start_with({"a"});
  die("a");
  EXPECT_EQ(phase(), Phase::kFailed);
  restart(journal());
  EXPECT_EQ(phase(), Phase::kForming);
  come_back("a");
  EXPECT_THAT(last<Fail>("a")->reason, HasSubstr("all members are gone"));
}

/// Behind a network that failed they train on, and come back.
TEST_F(RecoveryTest, AJobWhoseMembersFellSilentIsNotOver) {
  start_with({"a", "b"});
  silent_ = {"a", "b"};
  pass(Milliseconds(120000));
  EXPECT_EQ(phase(), Phase::kFailed);
  silent_.clear();
  restart(journal());
  EXPECT_EQ(phase(), Phase::kRecovering);
  come_back("a");
  come_back("b");
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_EQ(count<Fail>("a"), 0U);
}

TEST_F(RecoveryTest, EachChangeOfTheViewCountsAfterwards) {
  start_with({"a", "b", "c"});
  restart(journal());
  for (const char* member : {"a", "b", "c"}) come_back(member);
  EXPECT_EQ(membership_->status(now_).view_changes, 0U);
  die("c");
  report_all({"a", "b"});
  EXPECT_EQ(membership_->status(now_).view_changes, 1U);
}

TEST_F(RecoveryTest, AByeDuringItCounts) {
  start_with({"a", "b"});
  restart(journal());
  come_back("a");
  say("a", Bye{true});
  come_back("b");
  say("b", Bye{true});
  EXPECT_EQ(phase(), Phase::kDone);
}

TEST_F(RecoveryTest, SuspicionsThatComeTogetherAreAboutOneAttemptToLink) {
  start_with({"a", "b", "c", "d", "e"});
  restart(journal());
  for (const char* member : {"a", "b", "c", "d"}) {
    come_back(member);
    say(member, Suspect{1, "e", "timed out"});
  }
  come_back("e");
  report_all({"a", "b", "c", "d", "e"});
  EXPECT_THAT(members(), ElementsAre("a", "b", "c", "d", "e"));
}

TEST_F(RecoveryTest, WaitingForJoinersHasAnEndAfterARestartToo) {
  options_.min_np = 2;
  start_with({"a", "b"}, options_);
  ready({"a", "b"});
  die("b");
  report_all({"a"});
  ASSERT_TRUE(view().below_minimum);
  restart(journal());
  options_.below_minimum_timeout = Milliseconds(60000);
  come_back("a");
  pass(Milliseconds(60100));
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_THAT(last<Fail>("a")->reason, HasSubstr("no joiner came"));
}

TEST_F(RecoveryTest, AJobThatBeginsAnewKeepsToTheMostThatItMayHave) {
  start_with({"a"});
  options_.max_np = 2;
  restart(journal());
  for (const char* joiner : {"l", "m", "n"}) join(joiner);
  pass(options_.start_timeout);
  EXPECT_THAT(members(), ElementsAre("l", "m"));
  EXPECT_EQ(count<Farewell>("n"), 0U);
}

TEST_F(RecoveryTest, WhoComesLateIsAskedToo) {
  start_with({"a", "b", "c"});
  ready({"a", "b", "c"});
  restart(journal());
  come_back("a");
  come_back("b");
  pass(kWindow + Milliseconds(10));
  ASSERT_EQ(phase(), Phase::kChanging);
  report("a");
  come_back("c");
  report_all({"a", "b", "c"});
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
}

TEST_F(RecoveryTest, TicksAreNeverDueInThePast) {
  start_with({"a", "b"});
  options_.start_timeout = kWindow / 2;
  restart(journal());
  come_back("a");
  for (int i = 0; i < 10; ++i) {
    pass(kWindow / 10);
    EXPECT_GT(membership_->next_tick(), now_);
  }
}

TEST_F(RecoveryTest, OneMemberIsAskedForAViewThatTheJournalLacks) {
  start_with({"a", "b", "c"});
  const View known = view();
  restart({});
  come_back("a");
  come_back("b");
  come_back("c");
  EXPECT_EQ(view().members, known.members);
  const auto& first = inbox_["a"];
  const auto request = std::find_if(first.begin(), first.end(), [](const Message& message) {
    return std::holds_alternative<ViewRequest>(message);
  });
  ASSERT_NE(request, first.end());
  EXPECT_TRUE(std::holds_alternative<Welcome>(*std::prev(request)))
      << "a client sends nothing before it is welcome";
  EXPECT_EQ(count<ViewRequest>("a") + count<ViewRequest>("b") + count<ViewRequest>("c"), 1U);
}

TEST_F(RecoveryTest, AnotherMemberIsAskedWhenTheFirstIsGone) {
  start_with({"a", "b", "c"});
  const SharedView known = last<Announce>("b")->view;
  restart({});
  Register registration;
  registration.generation = known->generation;
  for (const char* name : {"a", "b", "c"}) {
    connected_.insert(name);
    announced_.erase(name);  // does not answer by itself
    registration.incarnation = name;
    decide(Registered{registration});
  }
  EXPECT_EQ(count<ViewRequest>("a"), 1U);
  EXPECT_EQ(count<ViewRequest>("b"), 0U);
  lose_connection("a");
  ASSERT_EQ(count<ViewRequest>("b"), 1U);
  say("b", KnownView{known});
  pass(kWindow);
  EXPECT_EQ(view().generation, known->generation);
}

}  // namespace
}  // namespace elastic::rendezvous
