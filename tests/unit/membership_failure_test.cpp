#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

using FailureTest = MembershipTest;

TEST_F(FailureTest, DeathOfAMember) {
  start_with({"a", "b", "c"});
  die("b");
  EXPECT_EQ(phase(), Phase::kChanging);
  EXPECT_EQ(last<Freeze>("a")->at_commit, 0U);
  report("a", 5, 2);
  EXPECT_EQ(view().generation, 1U);
  report("c", 4, 1);

  EXPECT_EQ(view().generation, 2U);
  EXPECT_THAT(members(), ElementsAre("a", "c"));
  EXPECT_THAT(view().lost, ElementsAre("b"));
  EXPECT_EQ(view().cause, "worker b (rank 1) died: connection closed, its process has ended");
  EXPECT_EQ(view().lanes[0].position, 5U);
  EXPECT_THAT(view().lanes[0].holders, ElementsAre("a"));
  EXPECT_THAT(view().lanes[0].takers, ElementsAre("c"));
  EXPECT_EQ(view().commits, 2U);
  EXPECT_EQ(membership_->status(now_).view_changes, 1U);
}

TEST_F(FailureTest, SecondDeathRestartsTheRound) {
  start_with({"a", "b", "c", "d"});
  die("b");
  report("a", 3);
  report("c", 3);
  const auto first = *last<Freeze>("a");
  die("c");
  EXPECT_GT(last<Freeze>("a")->round, first.round);
  say("d", Report{1, first.round, {{3, ""}, {}}, 0, false});
  EXPECT_EQ(view().generation, 1U) << "an old round's report is ignored";
  report_all({"a", "d"}, 3);
  EXPECT_THAT(members(), ElementsAre("a", "d"));
  EXPECT_THAT(view().lost, ElementsAre("b", "c"));
  EXPECT_THAT(view().cause, HasSubstr("worker b (rank 1) died"));
  EXPECT_THAT(view().cause, HasSubstr("worker c (rank 2) died"));
}

TEST_F(FailureTest, DeathSupersedesADeferredRound) {
  start_with({"a", "b", "c"});
  ready({"a"});
  join("d");
  ready({"d"});
  report("a", 0, 1);
  die("c");
  EXPECT_EQ(last<Freeze>("a")->at_commit, 0U);
  report_all({"a", "b"}, 4, 1);
  EXPECT_THAT(members(), ElementsAre("a", "b")) << "no boundary, so no joiner";
  EXPECT_EQ(last<Freeze>("a")->at_commit, 2U) << "the joiner's turn comes at once";
  EXPECT_EQ(last<Freeze>("a")->generation, 2U);
  stop_at_boundary({"a", "b"});
  EXPECT_THAT(members(), ElementsAre("a", "b", "d"));
}

TEST_F(FailureTest, WhoDoesNotReportIsEvicted) {
  start_with({"a", "b", "c"});
  die("b");
  report("a");
  pass(Milliseconds(990));
  EXPECT_EQ(view().generation, 1U);
  pass(Milliseconds(20));
  EXPECT_THAT(members(), ElementsAre("a"));
  EXPECT_EQ(last<Farewell>("c")->reason, Farewell::Reason::kEvicted);
  EXPECT_THAT(last<Farewell>("c")->text, HasSubstr("did not report within 1000 ms"));
  EXPECT_FALSE(connected_.contains("c"));
}

TEST_F(FailureTest, AnEvictedIncarnationDoesNotComeBack) {
  start_with({"a", "b"});
  die("b");
  report("a");
  inbox_.clear();
  join("b");
  EXPECT_EQ(last<Farewell>("b")->reason, Farewell::Reason::kEvicted);
  EXPECT_FALSE(last<Welcome>("b"));
  EXPECT_TRUE(membership_->status(now_).joiners.empty());
}

TEST_F(FailureTest, SuspicionRelinksThoseThatLive) {
  start_with({"a", "b", "c"});
  say("a", Suspect{1, "b", "reset by peer"});
  EXPECT_TRUE(last<Freeze>("b")) << "the suspect is asked, too";
  const auto rounds = count<Freeze>("a");
  say("b", Suspect{1, "a", "reset by peer"});
  EXPECT_EQ(count<Freeze>("a"), rounds) << "the round is running already";
  report_all({"a", "b", "c"}, 7);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(view().generation, 2U);
  EXPECT_TRUE(view().lost.empty());
  EXPECT_THAT(view().cause, HasSubstr("link between worker a (rank 0) and worker b (rank 1)"));

  say("c", Suspect{1, "b", "late"});
  EXPECT_EQ(phase(), Phase::kRunning) << "about an old view";
}

TEST_F(FailureTest, WhoCannotBeLinkedWithIsGivenUp) {
  start_with({"a", "b", "c"});
  for (const char* by : {"a", "c", "a"}) {
    say(by, Suspect{view().generation, "b", "no route to host"});
    report_all({"a", "b", "c"}, 7);
    EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
  }
  // The first view change moved the position, and so did not count: this is the third in a row.
  say("c", Suspect{view().generation, "b", "no route to host"});
  report_all({"a", "b", "c"}, 7);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));

  // So early, the failures may be temporary, for example those of a machine that was paused.
  say("a", Suspect{view().generation, "b", "no route to host"});
  report_all({"a", "b", "c"}, 7);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));

  now_ += std::chrono::seconds(5);
  say("a", Suspect{view().generation, "b", "no route to host"});
  EXPECT_EQ(last<Farewell>("b")->reason, Farewell::Reason::kEvicted);
  report_all({"a", "c"}, 7);
  EXPECT_THAT(members(), ElementsAre("a", "c"));
  EXPECT_THAT(view().cause, HasSubstr("worker b (rank 1) was given up: cannot be linked with"));
}

/// In a large view a lane can go on without a link that another lane waits for.
TEST_F(FailureTest, WhoCannotBeLinkedWithIsGivenUpThoughAnotherLaneGoesOn) {
  start_with({"a", "b", "c"});
  std::uint64_t named = 0;
  for (int i = 0; i < 4; ++i) {
    say(i % 2 == 0 ? "a" : "b", Suspect{view().generation, i % 2 == 0 ? "b" : "a", "no link"});
    ++named;
    for (const char* by : {"a", "b", "c"}) {
      say(by, Report{view().generation, last<Freeze>(by)->round, {{7, ""}, {named, ""}}, 0, false});
    }
    ASSERT_THAT(members(), ElementsAre("a", "b", "c"));
    pass(Milliseconds(5000));
  }
  say("a", Suspect{view().generation, "b", "no link"});
  EXPECT_EQ(last<Farewell>("b")->reason, Farewell::Reason::kEvicted);
  report_all({"a", "c"}, 7);
  EXPECT_THAT(members(), ElementsAre("a", "c"));
}

/// The link is there between two of its failures.
TEST_F(FailureTest, WhoseLinkBreaksNowAndThenStays) {
  start_with({"a", "b", "c"});
  for (std::uint64_t i = 1; i < 12; ++i) {
    say("a", Suspect{view().generation, "b", "reset by peer"});
    report_all({"a", "b", "c"}, i);
    ASSERT_THAT(members(), ElementsAre("a", "b", "c"));
    pass(Milliseconds(16000));
  }
}

TEST_F(FailureTest, AJoinerThatCannotBeLinkedWithIsRefusedAtOnce) {
  for (const bool joiner_tells : {false, true}) {
    journal_.clear();
    start_with_joiner({"a", "b"}, "c");
    const std::uint64_t generation = view().generation;
    say(joiner_tells ? "c" : "b",
        Suspect{generation, joiner_tells ? "b" : "c", "no link in time", true});
    ASSERT_TRUE(last<Refuse>("c"));
    EXPECT_THAT(last<Refuse>("c")->reason,
                HasSubstr("cannot be linked with worker b (rank 1): no link in time; check"));
    report_all({"a", "b"}, 7, 1, true);
    EXPECT_THAT(members(), ElementsAre("a", "b"));
    EXPECT_EQ(view().generation, generation + 1);
  }
}

/// The other end of the link may be the dead one.
TEST_F(FailureTest, AJoinerWhoseLinkBreaksStays) {
  start_with({"a", "b"});
  ready({"a", "b"});
  join("c");
  ready({"c"});
  stop_at_boundary({"a", "b"});
  say("c", Suspect{view().generation, "b", "reset by peer"});
  EXPECT_FALSE(last<Refuse>("c"));
  report_all({"a", "b", "c"}, 7, 1, true);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
}

TEST_F(FailureTest, WhoCannotBeLinkedWithAtTheStartFailsTheJob) {
  start_with({"a", "b", "c"});
  for (int i = 0; i < 3; ++i) {
    say("a", Suspect{view().generation, "b", "no route to host"});
    report_all({"a", "b", "c"});
  }
  now_ += std::chrono::seconds(5);
  say("c", Suspect{view().generation, "b", "no route to host"});
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_EQ(last<Fail>("a")->reason,
            "worker b (rank 1) cannot be linked with worker c (rank 2), tried 4 times: no route to "
            "host");
  EXPECT_TRUE(last<Fail>("b"));
}

TEST_F(FailureTest, SuspicionSupersedesADeferredRound) {
  start_with({"a", "b"});
  ready({"a", "b"});
  join("c");
  ready({"c"});
  say("a", Suspect{1, "b", "reset by peer"});
  EXPECT_EQ(last<Freeze>("b")->at_commit, 0U);
  report_all({"a", "b"}, 1, 0, true);
  EXPECT_EQ(view().generation, 2U);
  stop_at_boundary({"a", "b"});
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
}

TEST_F(FailureTest, FailsWhenTheStateIsGone) {
  start_with({"a", "b"});
  ready({"a", "b"});
  join("c");
  ready({"c"});
  stop_at_boundary({"a", "b"});
  die("a");
  report_all({"b", "c"}, 0, 1, false);
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_EQ(last<Fail>("c")->reason, "the last worker that had the state is gone");
}

TEST_F(FailureTest, FailsWhenAllMembersAreGone) {
  start_with({"a", "b"});
  join("c");
  die("a");
  die("b");
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_EQ(last<Fail>("c")->reason, "all members are gone");
}

TEST_F(FailureTest, BelowTheMinimumFailsAtOnceWithoutRun) {
  start_with({"a", "b"}, {.min_np = 2});
  die("b");
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_THAT(last<Fail>("a")->reason, HasSubstr("only 1 workers are left, min_np is 2"));
}

TEST_F(FailureTest, BelowTheMinimumSurvivorsWaitForJoiners) {
  start_with({"a", "b"}, {.min_np = 2});
  ready({"a", "b"});
  die("b");
  report("a", 3, 1, true);
  EXPECT_TRUE(view().below_minimum);
  EXPECT_EQ(last<Freeze>("a")->at_commit, 2U);
  pause_at_boundary({"a"});
  EXPECT_EQ(phase(), Phase::kChanging) << "waits for a joiner";
  pass(Milliseconds(30000));
  join("c");
  EXPECT_EQ(view().generation, 2U);
  ready({"c"});
  report_at_boundary("a", 4, 2);
  EXPECT_THAT(members(), ElementsAre("a", "c"));
  EXPECT_FALSE(view().below_minimum);
  pass(Milliseconds(60000));
  EXPECT_EQ(phase(), Phase::kRunning) << "the clock of the drop has stopped";
}

TEST_F(FailureTest, BelowTheMinimumEndsInAnErrorWhenNoWorkerComes) {
  start_with({"a", "b"}, {.min_np = 2});
  ready({"a", "b"});
  die("b");
  report("a", 3, 1, true);
  pause_at_boundary({"a"});
  pass(Milliseconds(59990));
  EXPECT_EQ(phase(), Phase::kChanging);
  pass(Milliseconds(20));
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_EQ(last<Fail>("a")->reason,
            "only 1 workers are left, min_np is 2, and no joiner came within 60000 ms");
}

TEST_F(FailureTest, ProtocolViolationsEvict) {
  start_with({"a", "b", "c"});
  say("b", StopRequest{});
  EXPECT_FALSE(connected_.contains("b"));
  say("c", Report{1, last<Freeze>("c")->round, {}, 0, false});
  EXPECT_FALSE(connected_.contains("c"));
  EXPECT_EQ(say("c", Heartbeat{}).reason, "") << "c does not know yet: no word about it";
  report("a");
  EXPECT_THAT(members(), ElementsAre("a"));
}

TEST_F(FailureTest, UnknownWorkersAndOutOfPlaceMessagesAreIgnored) {
  start_with({"a"});
  EXPECT_THAT(say("x", Heartbeat{}).reason, HasSubstr("unknown worker"));
  EXPECT_THAT(say("a", Report{1, 3, {{}, {}}, 0, false}).reason, HasSubstr("another round"));
  EXPECT_THAT(say("a", Promise{3, true, 0}).reason, HasSubstr("another round"));
  EXPECT_TRUE(decide(ConnectionLost{"x", ""}).actions.empty());
  EXPECT_EQ(phase(), Phase::kRunning);
}

}  // namespace
}  // namespace elastic::rendezvous
