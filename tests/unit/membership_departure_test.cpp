#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

using DepartureTest = MembershipTest;

TEST_F(DepartureTest, EveryMemberSaysByeAtTheEnd) {
  start_with({"a", "b"});
  join("c");
  say("a", Bye{true});
  EXPECT_FALSE(last<Farewell>("a"));
  pass(Milliseconds(400));
  say("b", Bye{true});
  EXPECT_EQ(phase(), Phase::kDone);
  for (const char* worker : {"a", "b", "c"}) {
    EXPECT_EQ(last<Farewell>(worker)->reason, Reason::kDone) << worker;
  }
  EXPECT_EQ(view().generation, 1U);
}

TEST_F(DepartureTest, AWorkerOfAnotherTrainingIsRefusedByAServerWhoseJobIsOver) {
  start_with({"a", "b"});
  join("c");
  say("a", Bye{true});
  say("b", Bye{true});
  join("d");
  EXPECT_FALSE(last<Farewell>("d"));
  EXPECT_THAT(last<Refuse>("d")->reason, HasSubstr("the job was done before this worker came"));
  EXPECT_THAT(last<Refuse>("d")->reason, HasSubstr("start a new server"));
  join_launched("e");
  EXPECT_EQ(last<Farewell>("e")->reason, Reason::kDone) << "it is a replacement";
  come_back("a");
  EXPECT_EQ(count<Farewell>("a"), 2U) << "it may have missed the first";
  join("c");
  EXPECT_EQ(count<Farewell>("c"), 2U) << "it waited to join when the job ended";
}

TEST_F(DepartureTest, AMemberThatWasGivenUpHearsOfTheEndAsANewWorker) {
  start_with({"a", "b"});
  die("b");
  report("a");
  say("a", Bye{true});
  EXPECT_EQ(phase(), Phase::kDone);
  join_again("b again", 1);
  EXPECT_EQ(last<Farewell>("b again")->reason, Reason::kDone);
  join("c");
  EXPECT_TRUE(last<Refuse>("c"));
}

TEST_F(DepartureTest, AJoinerThatTheEndFoundDisconnectedHearsOfIt) {
  start_with({"a"});
  join("b");
  lose_connection("b");
  say("a", Bye{true});
  EXPECT_EQ(phase(), Phase::kDone);
  join("b");
  EXPECT_EQ(last<Farewell>("b")->reason, Reason::kDone);
}

TEST_F(DepartureTest, MemberThatGoesAfterItsByeHasLeft) {
  start_with({"a", "b"});
  say("a", Bye{true});
  die("a");
  report("b", 2);
  EXPECT_THAT(view().left, ElementsAre("a"));
  EXPECT_TRUE(view().lost.empty());
  EXPECT_EQ(view().cause, "worker a (rank 0) left");
  die("b");
  EXPECT_EQ(phase(), Phase::kDone) << "a worker has seen the job's end";
}

TEST_F(DepartureTest, DeathBetweenTheFirstByeAndTheLast) {
  start_with({"a", "b", "c"});
  say("a", Bye{true});
  die("b");
  report("a", 5);
  report("c", 4);
  EXPECT_THAT(members(), ElementsAre("a", "c")) << "a has a result that c needs";
  EXPECT_THAT(view().lanes[0].holders, ElementsAre("a"));
  say("c", Bye{true});
  EXPECT_EQ(phase(), Phase::kDone);
}

TEST_F(DepartureTest, OneMemberLeavesEarly) {
  start_with({"a", "b", "c"});
  say("b", Bye{false});
  EXPECT_EQ(last<Freeze>("b")->at_commit, 0U);
  report_all({"a", "b", "c"}, 4);
  EXPECT_THAT(members(), ElementsAre("a", "c"));
  EXPECT_THAT(view().left, ElementsAre("b"));
  EXPECT_EQ(last<Farewell>("b")->reason, Reason::kDone);
  EXPECT_EQ(phase(), Phase::kRunning);
}

/// Members that a timeout has made leave, for instance: the training is not done.
TEST_F(DepartureTest, AJobWhoseMembersAllCannotGoOnHasFailed) {
  start_with({"a", "b"});
  say("a", Bye{false, {}, true});
  die("a");
  report("b", 4);
  EXPECT_THAT(members(), ElementsAre("b"));
  EXPECT_THAT(view().cause, HasSubstr("worker a (rank 0) could not go on, and left"));
  say("b", Bye{false, {}, true});
  die("b");
  EXPECT_EQ(phase(), Phase::kFailed);
}

/// `shutdown` after an exception: the others go on, so it waits for none of them.
TEST_F(DepartureTest, MemberThatCannotGoOnIsLetGoAtOnceAndIsNoReasonToEndTheJob) {
  start_with({"a", "b", "c"});
  ready({"a", "b", "c"});
  say("b", Bye{false, "an exception", true});
  EXPECT_EQ(phase(), Phase::kChanging) << "no grace";
  report_all({"a", "b", "c"}, 4);
  EXPECT_THAT(members(), ElementsAre("a", "c"));
  EXPECT_EQ(last<Farewell>("b")->reason, Reason::kDone);
  EXPECT_EQ(view().cause, "worker b (rank 1) could not go on, and left: an exception");
  EXPECT_TRUE(membership_->joinable());
  const auto departed = membership_->status(now_).departed;
  ASSERT_EQ(departed.size(), 1U);
  EXPECT_EQ(departed[0].how, "unable");
  EXPECT_EQ(departed[0].why, "an exception");
}

TEST_F(DepartureTest, AJobThatNoMemberCouldGoOnWithSaysWhy) {
  start_with({"a", "b"});
  say("a", Bye{false, "one", true});
  say("b", Bye{false, "two", true});
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_EQ(last<Fail>("a")->reason, "no member could go on: rank 0: one; rank 1: two");
}

TEST_F(DepartureTest, AJobThatNoMemberCouldGoOnWithNamesThoseThatLeftBefore) {
  start_with({"a", "b"});
  say("a", Bye{false, "one", true});
  report_all({"a", "b"}, 4);
  ASSERT_THAT(members(), ElementsAre("b"));
  say("b", Bye{false, "two", true});
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_THAT(last<Fail>("b")->reason, testing::AllOf(HasSubstr("no member could go on: "),
                                                      HasSubstr(": one; rank 0: two")));
}

/// All were started alike, with too few descriptors for instance, and would leave one by one.
TEST_F(DepartureTest, AJobThatManyMembersCannotBeginHasFailed) {
  start_with({"a", "b", "c"});
  say("a", Bye{false, "too few", true, true});
  die("a");
  report("b", 0);
  report("c", 0);
  ASSERT_THAT(members(), ElementsAre("b", "c"));
  say("b", Bye{false, "too few", true, true});
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_THAT(last<Fail>("c")->reason,
              testing::AllOf(HasSubstr("too many members could not begin: "),
                             HasSubstr("rank 0: too few")));
}

TEST_F(DepartureTest, AJobThatHasBegunGoesOnWithoutThoseThatWereStartedBadly) {
  start_with({"a", "b", "c"});
  for (const std::string& gone : Names{"a", "b"}) {
    say(gone, Bye{false, "too few", true, true});
    die(gone);
    report_all({"a", "b", "c"}, 4);
  }
  EXPECT_THAT(members(), ElementsAre("c"));
  EXPECT_EQ(phase(), Phase::kRunning);
}

/// The text has to fit into a message, however many workers there are and whatever they say.
TEST_F(DepartureTest, NamesSomeOfManyReasonsOnly) {
  Names names;
  for (char name = 'a'; name < 'a' + 12; ++name) names.emplace_back(1, name);
  start_with(names);
  for (const std::string& each : names) {
    say(each, Bye{false, each + std::string(100000, 'x'), true});
  }
  EXPECT_EQ(phase(), Phase::kFailed);
  const std::string reason = last<Fail>("a")->reason;
  EXPECT_LT(reason.size(), 20000U);
  EXPECT_THAT(reason, HasSubstr("; and 4 more"));
}

TEST_F(DepartureTest, SaysAReasonThatSeveralGiveOnce) {
  start_with({"a", "b", "c"});
  say("a", Bye{false, "one", true});
  say("b", Bye{false, "two", true});
  say("c", Bye{false, "one", true});
  EXPECT_EQ(last<Fail>("a")->reason, "no member could go on: rank 0, rank 2: one; rank 1: two");
}

TEST_F(DepartureTest, NamesSomeOfManyWithOneReasonOnly) {
  Names names;
  for (char name = 'a'; name < 'a' + 10; ++name) names.emplace_back(1, name);
  start_with(names);
  for (const std::string& each : names) say(each, Bye{false, "one", true});
  EXPECT_THAT(last<Fail>("a")->reason, testing::EndsWith("rank 6, rank 7 and 2 more: one"));
}

TEST_F(DepartureTest, LeaverStaysOnceMoreForAResultThatOnlyItHas) {
  start_with({"a", "b", "c"});
  say("b", Bye{false});
  report("a", 4);
  report("b", 5);
  report("c", 4);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(view().lanes[0].holders, ElementsAre("b"));
  EXPECT_THAT(view().lanes[0].takers, ElementsAre("a", "c"));
  EXPECT_EQ(phase(), Phase::kRunning) << "it is left in peace to hand it over";
  pass(Milliseconds(510));
  EXPECT_EQ(phase(), Phase::kChanging);
  report_all({"a", "b", "c"}, 5);
  EXPECT_THAT(members(), ElementsAre("a", "c"));
  EXPECT_EQ(last<Farewell>("b")->reason, Reason::kDone);
}

TEST_F(DepartureTest, StatusSaysHowMembersLeft) {
  start_with({"a", "b", "c"});
  decide(RemoveWorker{1});
  report_all({"a", "b", "c"});
  ASSERT_THAT(members(), ElementsAre("a", "c"));
  // All have the same label here, and the latest counts.
  ASSERT_EQ(membership_->status(now_).departed.size(), 1U);
  EXPECT_EQ(membership_->status(now_).departed[0].how, "removed");
  die("c");
  EXPECT_EQ(membership_->status(now_).departed[0].how, "lost");
  join("d");
  EXPECT_TRUE(membership_->status(now_).departed.empty());
}

TEST_F(DepartureTest, NoWorkerJoinsAJobAtItsEnd) {
  start_with({"a", "b"});
  ready({"a", "b"});
  say("a", Bye{true});
  join("c");
  ready({"c"});
  pass(Milliseconds(510));
  report_all({"a", "b"}, 4, 1, true);
  EXPECT_THAT(members(), ElementsAre("b"));
  EXPECT_EQ(phase(), Phase::kRunning);
  say("b", Bye{true});
  EXPECT_EQ(last<Farewell>("c")->reason, Reason::kDone);
}

}  // namespace
}  // namespace elastic::rendezvous
