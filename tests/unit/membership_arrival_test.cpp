#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

using ArrivalTest = MembershipTest;

TEST_F(ArrivalTest, FirstViewInOrderOfSlotsThenOfArrival) {
  start({.initial_np = 4});
  join("late");
  join("slot1", 1);
  join("later");
  EXPECT_EQ(phase(), Phase::kForming);
  EXPECT_FALSE(last<Welcome>("late")->joining);
  join("slot0", 0);

  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_THAT(members(), ElementsAre("slot0", "slot1", "late", "later"));
  EXPECT_EQ(view().generation, 1U);
  EXPECT_EQ(view().lanes.size(), 2U);
  EXPECT_EQ(view().joined, members());
  EXPECT_EQ(*last<Announce>("late")->view, view());
}

TEST_F(ArrivalTest, StartsWithFewerAfterTheTimeout) {
  start({.initial_np = 4, .min_np = 2});
  join("a");
  join("b");
  pass(Milliseconds(59900));
  EXPECT_EQ(phase(), Phase::kForming);
  pass(Milliseconds(200));
  EXPECT_THAT(members(), ElementsAre("a", "b"));
}

TEST_F(ArrivalTest, FailsWithTooFewAndSaysHowManyCame) {
  start({.initial_np = 4, .min_np = 3});
  join("a");
  join("b");
  pass(Milliseconds(60000));
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_THAT(last<Fail>("a")->reason, HasSubstr("only 2 of 4 workers came within 60000 ms"));
  EXPECT_TRUE(last<Fail>("b"));
  join("c");
  EXPECT_TRUE(last<Fail>("c"));
  EXPECT_EQ(membership_->next_tick(), TimePoint::max());
}

/// Each would wait for links that the other does not make.
TEST_F(ArrivalTest, WorkersThatLinkUpInOtherWaysFailTheJob) {
  start({.initial_np = 3});
  join("of another release");
  join_linked("a", 16);
  join_linked("b", 100);
  EXPECT_EQ(phase(), Phase::kFailed);
  for (const char* worker : {"a", "b"}) {
    EXPECT_EQ(last<Fail>(worker)->reason,
              "ELASTIC_ALL_LINKED (Options::all_linked) has to be the same on all workers: it is "
              "16 at a, and 100 at b");
    EXPECT_TRUE(last<Fail>(worker)->misfit);
  }
}

TEST_F(ArrivalTest, AJoinerThatLinksUpInAnotherWayIsRefused) {
  start({.initial_np = 2});
  join_linked("a", 16);
  join_linked("b", 16);
  join_linked("c", 100);
  EXPECT_EQ(last<Refuse>("c")->reason,
            "ELASTIC_ALL_LINKED (Options::all_linked) has to be the same on all workers: it is 100 "
            "here, and 16 at the "
            "members");
  join_linked("d", 16);
  EXPECT_TRUE(last<Welcome>("d")->joining);
  EXPECT_THAT(members(), ElementsAre("a", "b"));
}

TEST_F(ArrivalTest, WorkerLostWhileFormingIsJustGone) {
  start({.initial_np = 2});
  join("a");
  die("a");
  join("b");
  EXPECT_EQ(phase(), Phase::kForming);
  join("c");
  EXPECT_THAT(members(), ElementsAre("b", "c"));
}

TEST_F(ArrivalTest, AMemberThatComesBackBeforeItsLossWasNoticedGoesOn) {
  start_with({"a", "b"});
  come_back("a");
  EXPECT_FALSE(last<Welcome>("a")->joining);
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_EQ(view().generation, 1U);
}

TEST_F(ArrivalTest, AMemberThatMissedItsViewIsSentItAgain) {
  start_with({"a", "b"});
  const std::size_t before = count<Announce>("a");
  join("a");
  EXPECT_EQ(count<Announce>("a"), before + 1);
  EXPECT_EQ(view().generation, 1U);
}

TEST_F(ArrivalTest, AMemberThatComesBackInTheMiddleOfARoundIsAskedAgain) {
  start_with({"a", "b", "c"});
  die("c");
  come_back("a", true);
  EXPECT_EQ(count<Freeze>("a"), 2U);
  report_all({"a", "b"});
  EXPECT_THAT(members(), ElementsAre("a", "b"));
}

TEST_F(ArrivalTest, JoinsAtTheNextStepBoundary) {
  start_with({"a", "b"});
  join("c");
  EXPECT_TRUE(last<Welcome>("c")->joining);
  say("c", Ready{kLayout});
  EXPECT_EQ(phase(), Phase::kRunning) << "no member has told the job's layout";
  ready({"a"});
  EXPECT_EQ(phase(), Phase::kChanging);
  EXPECT_EQ(last<Freeze>("b")->at_commit, 1U);
  stop_at_boundary({"a", "b"}, 6);

  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(view().joined, ElementsAre("c"));
  EXPECT_EQ(view().commits, 1U);
  EXPECT_EQ(view().lanes[0].position, 6U);
  EXPECT_TRUE(view().members[0].synced);
  EXPECT_FALSE(view().members[2].synced);
  EXPECT_THAT(view().cause, HasSubstr("worker c joined"));
  EXPECT_EQ(phase(), Phase::kRunning);
}

TEST_F(ArrivalTest, ProposesALaterCommitUntilAllMembersPromise) {
  start_with({"a", "b"});
  ready({"a", "b"});
  join("c");
  ready({"c"});
  const auto first = *last<Freeze>("a");
  say("a", Promise{first.round, true, 0});
  say("b", Promise{first.round, false, 7});
  const auto second = *last<Freeze>("a");
  EXPECT_GT(second.round, first.round);
  EXPECT_EQ(second.at_commit, 9U);
  say("a", Promise{second.round, false, 12});
  EXPECT_EQ(last<Freeze>("b")->at_commit, 16U) << "the lead doubles";

  const auto third = *last<Freeze>("a");
  say("b", Paused{third.round, 16});
  say("a", Paused{first.round, 1});
  EXPECT_EQ(last<Freeze>("a")->round, third.round) << "the pause for an old round does not count";
  say("a", Paused{third.round, 16});
  report_at_boundary("a", 0, 16);
  report_at_boundary("b", 0, 16);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(view().commits, 16U);
}

/// Another thread's operation may be complete on one member and not on another, though the training
/// threads have stopped after the same step.
TEST_F(ArrivalTest, PositionsAreThoseOfFrozenLanesNotOfThePause) {
  start_with({"a", "b"});
  ready({"a", "b"});
  join("c");
  ready({"c"});
  const std::uint64_t round = last<Freeze>("a")->round;
  say("a", Report{1, round, {{6, ""}, {}}, 1, true, true});
  EXPECT_EQ(view().generation, 1U) << "no member was asked to freeze";
  pause_at_boundary({"a", "b"});
  EXPECT_EQ(view().generation, 1U);
  EXPECT_EQ(last<Freeze>("b")->at_commit, 0U);
  report_at_boundary("a", 7, 1);
  report_at_boundary("b", 6, 1);
  EXPECT_THAT(members(), ElementsAre("a", "b")) << "c would start behind a result it has not";
  EXPECT_EQ(view().lanes[0].position, 7U);
  EXPECT_THAT(view().lanes[0].holders, ElementsAre("a"));
  EXPECT_THAT(view().lanes[0].takers, ElementsAre("b"));
  stop_at_boundary({"a", "b"}, 8);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(view().admitted_at, view().commits);
}

TEST_F(ArrivalTest, AMemberThatDiesWhileAllAreStoppedDoesNotKeepTheJoinerWaiting) {
  start_with({"a", "b", "c"});
  ready({"a", "b", "c"});
  join("d");
  ready({"d"});
  pause_at_boundary({"a", "b", "c"});
  report_at_boundary("a", 6, 1);
  die("c");
  report_at_boundary("a", 6, 1);
  report_at_boundary("b", 6, 1);
  EXPECT_THAT(members(), ElementsAre("a", "b", "d"));
}

/// A member that lost its connection for a moment has gone on training.
TEST_F(ArrivalTest, NoJoinerIsAdmittedWhereNotAllHaveStoppedAfterTheSameStep) {
  start_with({"a", "b", "c"});
  ready({"a", "b", "c"});
  join("d");
  ready({"d"});
  pause_at_boundary({"a", "b", "c"});
  come_back("b");
  report_at_boundary("a", 6, 1);
  report_at_boundary("c", 6, 1);
  report("b", 6, 1, true);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));

  pause_at_boundary({"a", "b", "c"});
  report_at_boundary("a", 9, stopped_after_);
  report_at_boundary("b", 9, stopped_after_ + 1);
  report_at_boundary("c", 9, stopped_after_);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(phase(), Phase::kChanging) << "the joiner still waits for a boundary";
}

/// Between the pause and the reports the last joiner is gone: the members stay where they are.
TEST_F(ArrivalTest, MembersThatAreTooFewWaitForAnotherJoinerWhereTheyStand) {
  start_with({"a", "b"}, {.min_np = 2});
  ready({"a", "b"});
  die("b");
  report("a", 5, 0, true);
  ASSERT_TRUE(view().below_minimum);
  join("c");
  ready({"c"});
  pause_at_boundary({"a"});
  die("c");
  report_at_boundary("a", 6, stopped_after_);
  EXPECT_THAT(members(), ElementsAre("a"));
  EXPECT_EQ(phase(), Phase::kChanging);
  EXPECT_GT(membership_->next_tick(), now_) << "the server would spin";
  const std::uint64_t generation = view().generation;
  pass(Milliseconds(3000));
  EXPECT_EQ(view().generation, generation);
  join("d");
  ready({"d"});
  EXPECT_THAT(members(), ElementsAre("a", "d"));
  EXPECT_FALSE(view().below_minimum);
}

TEST_F(ArrivalTest, JoinersWaitWhileTheWorldIsFull) {
  start_with({"a", "b"}, {.max_np = 3});
  ready({"a", "b"});
  for (const char* joiner : {"c", "d"}) join(joiner);
  ready({"d", "c"});
  stop_at_boundary({"a", "b"});
  EXPECT_THAT(members(), ElementsAre("a", "b", "c")) << "the first to arrive";
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_EQ(membership_->status(now_).joiners.size(), 1U);

  die("b");
  report_all({"a", "c"}, 0, 0, true);
  EXPECT_THAT(members(), ElementsAre("a", "c"));
  stop_at_boundary({"a", "c"});
  EXPECT_THAT(members(), ElementsAre("a", "c", "d"));
}

TEST_F(ArrivalTest, RefusesAJoinerWithAnotherLayoutAndGoesOn) {
  start_with({"a"});
  ready({"a"});
  join("b");
  say("b", Ready{{{"w1", "f32", 2048}, {"steps", "scalar i64", 1}}});
  EXPECT_EQ(last<Refuse>("b")->reason,
            "state entry 'w1': the job has f32 x 4096, this worker f32 x 2048; add the same "
            "entries, of the same types and sizes, on all workers");
  EXPECT_FALSE(connected_.contains("b"));
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_EQ(view().generation, 1U);
}

TEST_F(ArrivalTest, ComparesJoinersThatCameBeforeTheLayoutWasKnown) {
  start_with({"a"});
  join("b");
  say("b", Ready{{}});
  ready({"a"});
  EXPECT_THAT(last<Refuse>("b")->reason, HasSubstr("this worker does not have it"));
}

TEST_F(ArrivalTest, AMemberWithAnotherLayoutFailsTheJobOnEveryMember) {
  start_with({"a", "b", "c"});
  ready({"a"});
  join("d");
  say("b", Ready{{{"w1", "f32", 4096}, {"epochs", "scalar i64", 1}}});
  EXPECT_EQ(phase(), Phase::kFailed);
  for (const char* worker : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(last<Fail>(worker)) << worker;
    EXPECT_EQ(last<Fail>(worker)->reason,
              "state entry 1: rank 0 has 'steps', rank 1 'epochs'; add the same entries, of the "
              "same types and sizes, on all workers");
    EXPECT_TRUE(last<Fail>(worker)->misfit);
    EXPECT_EQ(last<Fail>(worker)->mismatch, false);
  }
  join("e");
  EXPECT_EQ(last<Fail>("e")->reason, last<Fail>("a")->reason);
}

TEST_F(ArrivalTest, AMemberMaySayThatTheJobCannotGoOn) {
  start_with({"a", "b"});
  ready({"a", "b"});
  say("b", Bye{false, "the state differs"});
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_EQ(last<Fail>("a")->reason, "the state differs");
  EXPECT_EQ(last<Fail>("a")->mismatch, true);
}

TEST_F(ArrivalTest, ThatAJoinerCannotGoOnConcernsItAlone) {
  start_with({"a"});
  ready({"a"});
  join("b");
  say("b", Bye{false, "the state differs"});
  EXPECT_EQ(phase(), Phase::kRunning);
}

TEST_F(ArrivalTest, AJoinerThatCannotGoOnIsRemembered) {
  start_with({"a"});
  ready({"a"});
  join("b");
  say("b", Bye{false, "left the job 5 times", true});
  EXPECT_EQ(phase(), Phase::kRunning);
  const auto departed = membership_->status(now_).departed;
  ASSERT_EQ(departed.size(), 1U);
  EXPECT_EQ(departed[0].how, "unable");
  EXPECT_EQ(departed[0].why, "left the job 5 times");
}

TEST_F(ArrivalTest, AJobIsJoinableWhileAMemberIsInRun) {
  start_with({"a", "b"});
  join("c");
  ready({"c"});
  EXPECT_FALSE(membership_->joinable()) << "c is no member";
  ready({"b"});
  EXPECT_TRUE(membership_->joinable());
  EXPECT_TRUE(membership_->status(now_).joinable);
  say("a", Bye{true});
  EXPECT_FALSE(membership_->joinable()) << "the job is at its end";
}

TEST_F(ArrivalTest, JoinerThatGivesUpDoesNotDisturb) {
  start_with({"a"});
  ready({"a"});
  join("b");
  ready({"b"});
  die("b");
  stop_at_boundary({"a"});
  EXPECT_THAT(members(), ElementsAre("a"));
  EXPECT_EQ(phase(), Phase::kRunning);
  join("c");
  say("c", Bye{});
  EXPECT_EQ(last<Farewell>("c")->reason, Farewell::Reason::kDone);
}

TEST_F(ArrivalTest, StatusSaysHowManyTheFirstViewWaitsFor) {
  start({.initial_np = 4, .min_np = 2});
  join("a");
  EXPECT_EQ(membership_->status(now_).initial_np, 4);
  EXPECT_EQ(membership_->status(now_).joiners.size(), 1U);
}

TEST_F(ArrivalTest, StatusTellsEverything) {
  start_with({"a", "b"}, {.min_np = 1, .max_np = 5});
  join("c");
  say("a", Heartbeat{});
  now_ += Milliseconds(30);
  const StatusReply status = membership_->status(now_);
  EXPECT_EQ(status.phase, "running");
  EXPECT_EQ(status.view, view());
  EXPECT_EQ(status.min_np, 1);
  EXPECT_EQ(status.max_np, 5);
  ASSERT_EQ(status.joiners.size(), 1U);
  EXPECT_EQ(status.joiners[0].incarnation, "c");
  EXPECT_FALSE(status.joiners[0].ready);
  EXPECT_EQ(status.view_changes, 0U);
  EXPECT_THAT(status.heartbeat_age_ms, ElementsAre(30.0, 30.0));
}

TEST_F(ArrivalTest, StatusTellsForHowLongADisconnectedMemberIsSilent) {
  start_with({"a", "b", "c"});
  lose_connection("b");
  now_ += Milliseconds(30);
  EXPECT_EQ(membership_->status(now_).heartbeat_age_ms.at(1), 30.0);
}

TEST_F(ArrivalTest, StatusTellsTheMembersLastStepsAfterTheEnd) {
  start_with({"a", "b"});
  say("a", Heartbeat{1, {20, 3}, 7, true});
  say("b", Heartbeat{1, {20, 2}, 7, true});
  say("a", Bye{true});
  say("b", Bye{true});
  EXPECT_EQ(phase(), Phase::kDone);
  const StatusReply status = membership_->status(now_);
  ASSERT_THAT(status.progress, SizeIs(2));
  EXPECT_EQ(status.progress[0].commits, 7U);
  EXPECT_EQ(status.progress[0].operations, 23U);
  EXPECT_EQ(status.progress[1].operations, 22U);
  EXPECT_FALSE(status.progress[0].connected);
}

}  // namespace
}  // namespace elastic::rendezvous
