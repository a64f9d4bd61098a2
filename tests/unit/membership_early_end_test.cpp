// Members that say that the job is at its end before the others do.
#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

using DepartureTest = MembershipTest;

TEST_F(DepartureTest, WhoIsEarlyLeavesWhenTheGraceRunsOut) {
  start_with({"a", "b", "c"}, {.min_np = 3});
  say("a", Bye{true});
  pass(Milliseconds(490));
  EXPECT_EQ(phase(), Phase::kRunning);
  pass(Milliseconds(20));
  EXPECT_EQ(phase(), Phase::kChanging);
  report_all({"a", "b", "c"}, 9);
  EXPECT_THAT(members(), ElementsAre("b", "c"));
  EXPECT_THAT(view().left, ElementsAre("a"));
  EXPECT_TRUE(view().lost.empty());
  EXPECT_FALSE(view().below_minimum) << "the job is at its end, nothing is to be waited for";
  EXPECT_EQ(last<Farewell>("a")->reason, Reason::kDone);
  EXPECT_EQ(view().cause, "worker a (rank 0) left");

  say("b", Bye{true});
  say("c", Bye{true});
  EXPECT_EQ(phase(), Phase::kDone);
}

/// All are at the same step; how long the others take to leave, while one saves, says nothing.
TEST_F(DepartureTest, MembersThatCommitNoFurtherStepHaveNotBeenLeftEarly) {
  start_with({"a", "b"}, {.min_np = 2});
  ready({"a", "b"});
  finish_alone("a", {"a", "b"});
  ASSERT_THAT(members(), ElementsAre("b"));
  say("b", Heartbeat{2, {12, 0}, 5, true});
  pass(std::chrono::minutes(5));
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_EQ(membership_->status(now_).departed.front().how, "finished");
  EXPECT_FALSE(membership_->joinable());
  say("b", Bye{true});
  EXPECT_EQ(phase(), Phase::kDone);
}

TEST_F(DepartureTest, AMemberThatOthersTrainOnWithoutEndedEarly) {
  start_with({"a", "b", "c"});
  ready({"a", "b", "c"});
  finish_alone("b", {"a", "b", "c"});
  ASSERT_THAT(members(), ElementsAre("a", "c"));
  EXPECT_FALSE(membership_->joinable());
  const Decision decision = say("c", Heartbeat{2, {10, 0}, 6, true});
  const std::string how = "its elastic::run ended after 5 steps, and the others trained on";
  EXPECT_THAT(decision.warnings, ElementsAre("worker b (rank 1) ended early: " + how));
  const auto departed = membership_->status(now_).departed;
  ASSERT_EQ(departed.size(), 1U);
  EXPECT_EQ(departed[0].how, "early");
  EXPECT_EQ(departed[0].why, how);
  EXPECT_TRUE(membership_->joinable()) << "the job is in its middle";
  EXPECT_TRUE(say("a", Heartbeat{2, {11, 0}, 7, true}).warnings.empty()) << "once";
  say("a", Bye{true});
  say("c", Bye{true});
  EXPECT_EQ(phase(), Phase::kDone);
}

TEST_F(DepartureTest, TheMinimumHoldsForMembersThatTrainOn) {
  start_with({"a", "b"}, {.min_np = 2});
  ready({"a", "b"});
  finish_alone("b", {"a", "b"});
  ASSERT_THAT(members(), ElementsAre("a"));
  EXPECT_FALSE(view().below_minimum);
  const Decision decision = say("a", Heartbeat{2, {10, 0}, 6, true});
  EXPECT_THAT(decision.warnings,
              ElementsAre(HasSubstr("1 of at least 2 workers (min_np) are left: from its next step "
                                    "boundary the job waits 60000 ms for more, and then fails")));
  report("a", 10, 6, true);
  EXPECT_TRUE(view().below_minimum);
  EXPECT_THAT(view().cause, HasSubstr("worker b (rank 1) ended early"));
  pause_at_boundary({"a"});
  EXPECT_EQ(phase(), Phase::kChanging) << "it waits";
  pass(options_.below_minimum_timeout);
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_THAT(last<Fail>("a")->reason,
              testing::AllOf(HasSubstr("only 1 workers are left, min_np is 2"),
                             HasSubstr("; worker b (rank 1) ended early: its elastic::run")));
}

TEST_F(DepartureTest, AReplacementOfAMemberThatEndedEarlyMayCome) {
  start_with({"a", "b"}, {.min_np = 2});
  ready({"a", "b"});
  finish_alone("b", {"a", "b"});
  say("a", Heartbeat{2, {10, 0}, 6, true});
  report("a", 10, 6, true);
  join("c");
  ready({"c"});
  stop_at_boundary({"a"}, 10);
  EXPECT_THAT(members(), ElementsAre("a", "c"));
  EXPECT_FALSE(view().below_minimum);
}

TEST_F(DepartureTest, WithoutRunOperationsTellWhoEndedEarly) {
  start_with({"a", "b"}, {.min_np = 2});
  say("b", Heartbeat{1, {9, 0}});
  say("b", Bye{true});
  pass(Milliseconds(510));
  report_all({"a", "b"}, 9);
  ASSERT_THAT(members(), ElementsAre("a"));
  say("a", Heartbeat{2, {9, 0}});
  EXPECT_EQ(phase(), Phase::kRunning);
  say("a", Heartbeat{2, {10, 0}});
  EXPECT_EQ(phase(), Phase::kFailed) << "no worker could join";
  EXPECT_THAT(last<Fail>("a")->reason,
              HasSubstr("; worker b (rank 1) ended early: it called elastic::shutdown"));
}

}  // namespace
}  // namespace elastic::rendezvous
