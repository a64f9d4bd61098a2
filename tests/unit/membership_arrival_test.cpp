#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using ArrivalTest = MembershipTest;

TEST_F(ArrivalTest, FirstViewInOrderOfSlotsThenOfArrival) {
  MembershipOptions options;
  options.initial_np = 4;
  start(options);
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
  EXPECT_EQ(last<Announce>("late")->view, view());
}

TEST_F(ArrivalTest, StartsWithFewerAfterTheTimeout) {
  MembershipOptions options;
  options.initial_np = 4;
  options.min_np = 2;
  start(options);
  join("a");
  join("b");
  pass(Milliseconds(59900));
  EXPECT_EQ(phase(), Phase::kForming);
  pass(Milliseconds(200));
  EXPECT_THAT(members(), ElementsAre("a", "b"));
}

TEST_F(ArrivalTest, FailsWithTooFewAndSaysHowManyCame) {
  MembershipOptions options;
  options.initial_np = 4;
  options.min_np = 3;
  start(options);
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

TEST_F(ArrivalTest, WorkerLostWhileFormingIsJustGone) {
  MembershipOptions options;
  options.initial_np = 2;
  start(options);
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
  const std::uint64_t first = last<Freeze>("a")->round;
  come_back("a", true);
  EXPECT_GT(last<Freeze>("a")->round, first);
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

TEST_F(ArrivalTest, ProposesALaterCommitUntilEverybodyPromises) {
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

  report("b", 0, 16, true);
  say("a", Report{1, first.round, {{}, {}}, 1, true});
  EXPECT_EQ(view().generation, 1U) << "the report of an old round does not count";
  report("a", 0, 16, true);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(view().commits, 16U);
}

TEST_F(ArrivalTest, JoinersWaitWhileTheWorldIsFull) {
  MembershipOptions options;
  options.max_np = 3;
  start_with({"a", "b"}, options);
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
            "state entry 'w1': the job has f32 x 4096, this worker f32 x 2048");
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

TEST_F(ArrivalTest, RefusesAMemberWithAnotherLayoutAndChangesTheView) {
  start_with({"a", "b"});
  ready({"a"});
  say("b", Ready{{{"w1", "f32", 4096}, {"epochs", "scalar i64", 1}}});
  EXPECT_EQ(last<Refuse>("b")->reason, "state entry 1: the job has 'steps', this worker 'epochs'");
  report("a");
  EXPECT_THAT(members(), ElementsAre("a"));
  EXPECT_THAT(view().cause, HasSubstr("worker b (rank 1) was refused: state entry"));
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

TEST_F(ArrivalTest, StatusTellsEverything) {
  MembershipOptions options;
  options.min_np = 1;
  options.max_np = 5;
  start_with({"a", "b"}, options);
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

}  // namespace
}  // namespace elastic::rendezvous
