// Members that are removed, and jobs that are stopped, on request.
#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

using DepartureTest = MembershipTest;

TEST_F(DepartureTest, RemovalAtAStepBoundary) {
  start_with({"a", "b", "c"});
  ready({"a", "b", "c"});
  EXPECT_TRUE(decide(RemoveWorker{1}).ok);
  stop_at_boundary({"a", "b", "c"}, 4);
  EXPECT_THAT(members(), ElementsAre("a", "c"));
  EXPECT_THAT(view().left, ElementsAre("b"));
  EXPECT_EQ(view().cause, "worker b (rank 1) was removed on request");
  EXPECT_EQ(last<Farewell>("b")->reason, Reason::kRemoved);
  EXPECT_FALSE(last<Announce>("b")->view->generation == 2);
}

TEST_F(DepartureTest, AMemberLeavesFromTheRequestOn) {
  start_with({"a", "b", "c"});
  ready({"a", "b", "c"});
  decide(RemoveWorker{1});
  die("c");
  EXPECT_FALSE(membership_->leaves("a"));
  EXPECT_TRUE(membership_->leaves("b")) << "at its next step boundary";
  EXPECT_TRUE(membership_->leaves("c")) << "it is gone, although the view has it";
  EXPECT_TRUE(membership_->leaves("stranger"));
}

TEST_F(DepartureTest, MemberThatIsGivenUpBeforeItsRemovalIsRemovedAllTheSame) {
  start_with({"a", "b", "c"});
  ready({"a", "b", "c"});
  decide(RemoveWorker{1});
  silent_.insert("b");
  pass(Milliseconds(600));
  EXPECT_EQ(last<Farewell>("b")->reason, Reason::kRemoved);
  come_back("b");
  EXPECT_EQ(last<Farewell>("b")->reason, Reason::kRemoved);
}

TEST_F(DepartureTest, RemovalWithoutRunIsImmediate) {
  start_with({"a", "b"});
  EXPECT_TRUE(decide(RemoveWorker{0}).ok);
  EXPECT_EQ(last<Freeze>("b")->at_commit, 0U);
  report_all({"a", "b"}, 4);
  EXPECT_THAT(members(), ElementsAre("b"));
  EXPECT_EQ(last<Farewell>("a")->reason, Reason::kRemoved);
}

TEST_F(DepartureTest, RemovalIsRefusedWithAReason) {
  start({.initial_np = 3, .min_np = 2});
  EXPECT_FALSE(decide(RemoveWorker{0}).ok);
  for (const char* worker : {"a", "b", "c"}) join(worker);
  EXPECT_THAT(decide(RemoveWorker{3}).reason, HasSubstr("there is no rank 3"));
  EXPECT_FALSE(decide(RemoveWorker{-1}).ok);
  ready({"a"});
  EXPECT_TRUE(decide(RemoveWorker{0}).ok);
  const Decision second = decide(RemoveWorker{1});
  EXPECT_FALSE(second.ok);
  EXPECT_THAT(second.reason, HasSubstr("1 workers would be left, min_np is 2"));
}

TEST_F(DepartureTest, RemovalSurvivesADeathInBetween) {
  start_with({"a", "b", "c"});
  ready({"a", "b", "c"});
  decide(RemoveWorker{0});
  die("c");
  report_all({"a", "b"}, 4, 1, true);
  EXPECT_THAT(members(), ElementsAre("a", "b"));
  EXPECT_EQ(view().cause, "worker c (rank 2) died: connection closed, its process has ended");
  stop_at_boundary({"a", "b"});
  EXPECT_THAT(members(), ElementsAre("b"));
}

TEST_F(DepartureTest, RemovalIsWithdrawnWhenDeathsLeaveTooFew) {
  start_with({"a", "b"});
  ready({"a", "b"});
  decide(RemoveWorker{0});
  die("b");
  report("a", 4, 1, true);
  EXPECT_THAT(members(), ElementsAre("a"));
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_THAT(reasons_, HasSubstr("worker a (rank 0) is not removed"));
}

TEST_F(DepartureTest, RemovalMakesRoomForAJoiner) {
  start_with({"a", "b"}, {.max_np = 2});
  ready({"a", "b"});
  join("c");
  ready({"c"});
  EXPECT_EQ(phase(), Phase::kRunning);
  decide(RemoveWorker{0});
  stop_at_boundary({"a", "b"});
  EXPECT_THAT(members(), ElementsAre("b", "c"));
}

/// With as many members as there have to be, and room for no more.
TEST_F(DepartureTest, RemovalAndJoinerChangePlaces) {
  start_with({"a", "b"}, {.min_np = 2, .max_np = 2});
  ready({"a", "b"});
  EXPECT_FALSE(decide(RemoveWorker{0}).ok);
  join("c");
  ready({"c"});
  EXPECT_EQ(phase(), Phase::kRunning) << "there is no room";
  EXPECT_TRUE(decide(RemoveWorker{0}).ok);
  EXPECT_FALSE(decide(RemoveWorker{1}).ok);
  stop_at_boundary({"a", "b"});
  EXPECT_THAT(members(), ElementsAre("b", "c"));
}

/// A removal that a joiner makes up for outlasts a round that has another reason.
TEST_F(DepartureTest, ABrokenLinkWithdrawsNoRemoval) {
  start_with({"a", "b"}, {.min_np = 2, .max_np = 2});
  ready({"a", "b"});
  join("c");
  ready({"c"});
  EXPECT_TRUE(decide(RemoveWorker{0}).ok);
  say("b", Suspect{view().generation, "a", "reset", false});
  report_all({"a", "b"}, 4, 1, true);
  EXPECT_THAT(members(), ElementsAre("a", "b"));
  stop_at_boundary({"a", "b"});
  EXPECT_THAT(members(), ElementsAre("b", "c"));
}

/// The joiner needs the state of the only member, which stays until it has given it.
TEST_F(DepartureTest, TheLastMemberIsRemovedOnceAJoinerHasItsState) {
  start_with({"a"}, {.min_np = 1, .max_np = 1});
  ready({"a"});
  join("b");
  ready({"b"});
  EXPECT_TRUE(decide(RemoveWorker{0}).ok);
  stop_at_boundary({"a"});
  EXPECT_THAT(members(), ElementsAre("a", "b")) << "one more than --max-np, for this view";
  stop_at_boundary({"a", "b"});
  EXPECT_THAT(members(), ElementsAre("b"));
  EXPECT_EQ(last<Farewell>("a")->reason, Reason::kRemoved);
}

TEST_F(DepartureTest, AllMembersChangePlacesWithJoiners) {
  start_with({"a", "b"}, {.min_np = 2, .max_np = 2});
  ready({"a", "b"});
  for (const char* joiner : {"c", "d"}) join(joiner);
  ready({"c", "d"});
  EXPECT_TRUE(decide(RemoveWorker{0}).ok);
  EXPECT_TRUE(decide(RemoveWorker{1}).ok);
  stop_at_boundary({"a", "b"});
  EXPECT_THAT(members(), ElementsAre("a", "c", "d"));
  stop_at_boundary({"a", "c", "d"});
  EXPECT_THAT(members(), ElementsAre("c", "d"));
}

TEST_F(DepartureTest, StopAtAStepBoundary) {
  start_with({"a", "b"});
  ready({"a", "b"});
  join("c");
  EXPECT_TRUE(decide(StopJob{}).ok);
  EXPECT_FALSE(last<Farewell>("a"));
  pause_at_boundary({"a", "b"});
  EXPECT_EQ(phase(), Phase::kDone);
  for (const char* worker : {"a", "b", "c"}) {
    EXPECT_EQ(last<Farewell>(worker)->reason, Reason::kStopped) << worker;
  }
  EXPECT_FALSE(decide(StopJob{}).ok);
}

TEST_F(DepartureTest, WorkerThatWasGivenUpBeforeAStopIsToldSo) {
  start_with({"a", "b", "c"});
  ready({"a", "b", "c"});
  silent_.insert("c");
  pass(Milliseconds(600));
  report_all({"a", "b"});
  decide(StopJob{});
  pause_at_boundary({"a", "b"});
  EXPECT_EQ(last<Farewell>("a")->reason, Reason::kStopped);
  come_back("c");
  EXPECT_EQ(last<Farewell>("c")->reason, Reason::kEvicted);
}

TEST_F(DepartureTest, StopWithoutRunIsImmediate) {
  start_with({"a", "b"});
  decide(StopJob{});
  EXPECT_EQ(phase(), Phase::kDone);
  EXPECT_EQ(last<Farewell>("b")->reason, Reason::kStopped);
}

TEST_F(DepartureTest, ALauncherEndsWorkersWithoutRun) {
  start_with({"a", "b"});
  decide(StopJob{true});
  EXPECT_EQ(phase(), Phase::kDone);
  EXPECT_TRUE(membership_->ends_workers());
  EXPECT_FALSE(last<Farewell>("a")) << "it would be an exception in a program that expects none";
}

TEST_F(DepartureTest, WithRunWorkersStopByThemselvesUnderALauncherToo) {
  start_with({"a", "b"});
  ready({"a", "b"});
  decide(StopJob{true});
  pause_at_boundary({"a", "b"});
  EXPECT_EQ(last<Farewell>("a")->reason, Reason::kStopped);
  EXPECT_FALSE(membership_->ends_workers());
}

TEST_F(DepartureTest, StopWhileForming) {
  start({.initial_np = 2});
  join("a");
  decide(StopJob{});
  EXPECT_EQ(phase(), Phase::kDone);
  EXPECT_EQ(last<Farewell>("a")->reason, Reason::kStopped);
}

}  // namespace
}  // namespace elastic::rendezvous
