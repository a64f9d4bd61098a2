// Members that have lost their connection to the server but may still be healthy.
#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

using AbsenceTest = MembershipTest;

TEST_F(AbsenceTest, MemberThatComesBackStaysAMember) {
  start_with({"a", "b", "c"});
  lose_connection("b");
  EXPECT_EQ(count<Freeze>("a"), 1U) << "the others are frozen at once, as for a death";
  report("a", 7);
  report("c", 7);
  EXPECT_EQ(view().generation, 1U) << "b is awaited";
  come_back("b");
  report("b", 6);
  EXPECT_EQ(view().generation, 2U);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(view().lost, IsEmpty());
  EXPECT_EQ(view().lanes[0].takers, Names{"b"});
  EXPECT_EQ(count<Freeze>("a"), 1U) << "its report has stayed valid";
}

TEST_F(AbsenceTest, MemberWhoseReportMayBeLostReportsAgain) {
  start_with({"a", "b", "c"});
  say("a", Suspect{1, "b", "reset"});
  report("b", 7);
  lose_connection("b");
  come_back("b", true);
  EXPECT_EQ(count<Freeze>("b"), 2U);
  report_all({"a", "c"}, 7);
  EXPECT_EQ(view().generation, 1U);
  report("b", 7);
  EXPECT_EQ(view().generation, 2U);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
}

TEST_F(AbsenceTest, MemberWhoseProcessHasEndedIsGivenUpAtOnce) {
  start_with({"a", "b", "c"});
  lose_connection("b");
  for (const char* other : {"a", "c"}) {
    EXPECT_EQ(last<Check>(other)->incarnations, Names{"b"}) << other;
  }
  report_all({"a", "c"}, 7);
  say("c", Gone{"b", "refused"});
  EXPECT_EQ(view().generation, 2U);
  EXPECT_THAT(view().lost, ElementsAre("b"));
  EXPECT_THAT(view().cause, HasSubstr("worker b (rank 1) died: reset by peer"));
  EXPECT_EQ(count<Freeze>("a"), 1U);
  join("b");
  EXPECT_EQ(last<Farewell>("b")->reason, Farewell::Reason::kEvicted);
}

TEST_F(AbsenceTest, JoinerOfItsHostProvesTheEndOfTheLastMember) {
  start_with({"a"});
  lose_connection("a");
  EXPECT_TRUE(phase() != Phase::kFailed) << "the network may have failed";
  join("b");
  const auto check = last<Check>("b");
  ASSERT_TRUE(check.has_value());
  EXPECT_EQ(check->incarnations, Names{"a"});
  ASSERT_TRUE(check->members.has_value()) << "a joiner knows no view";
  EXPECT_THAT(*check->members, SizeIs(1));
  EXPECT_EQ(check->members->front().incarnation, "a");
  say("b", Gone{"a", "refused"});
  EXPECT_EQ(phase(), Phase::kFailed);
  EXPECT_EQ(last<Fail>("b")->reason, "all members are gone");
  EXPECT_THAT(reasons_, HasSubstr("worker b says: refused"));
}

TEST_F(AbsenceTest, OneJoinerOfAHostIsAskedAndAnotherWhenThatOneIsGone) {
  start_with({"a"});
  join("b");
  lose_connection("a");
  join("c");
  EXPECT_EQ(count<Check>("b"), 1U);
  EXPECT_EQ(count<Check>("c"), 0U);
  say("c", Gone{"a", "refused"});
  EXPECT_TRUE(phase() != Phase::kFailed) << "it was not asked";
  die("b");
  EXPECT_EQ(count<Check>("c"), 1U);
  come_back("a");
  say("c", Gone{"a", "refused"});
  EXPECT_THAT(members(), ElementsAre("a"));
  EXPECT_TRUE(phase() != Phase::kFailed) << "it is back";
}

TEST_F(AbsenceTest, WordOfTheEndOfAMemberThatIsBackIsNotBelieved) {
  start_with({"a", "b", "c"});
  lose_connection("b");
  come_back("b");
  say("c", Gone{"b", "refused"});
  report_all({"a", "b", "c"}, 7);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
}

TEST_F(AbsenceTest, MemberThatWasAwayItselfIsAskedAgain) {
  start_with({"a", "b", "c", "d", "e"});
  lose_connection("b");
  lose_connection("c");
  come_back("c");
  EXPECT_EQ(count<Check>("c"), 2U) << "the first may be lost";
  EXPECT_EQ(last<Check>("c")->incarnations, Names{"b"});
}

TEST_F(AbsenceTest, WithoutProofTheGraceEnds) {
  start_with({"a", "b", "c"});
  lose_connection("b");
  report_all({"a", "c"}, 7);
  pass(options_.disconnect_grace - Milliseconds(1));
  EXPECT_EQ(view().generation, 1U);
  pass(Milliseconds(2));
  EXPECT_EQ(view().generation, 2U);
  EXPECT_THAT(view().lost, ElementsAre("b"));
  EXPECT_THAT(view().cause, HasSubstr("did not come back"));
  const StatusReply status = membership_->status(now_);
  ASSERT_EQ(status.departed.size(), 1U);
  EXPECT_EQ(status.departed[0].how, "evicted") << "its process may live";
  EXPECT_THAT(
      status.departed[0].why,
      HasSubstr("its connection was lost (reset by peer), and it did not come back within"));
}

TEST_F(AbsenceTest, ReportsOfThoseThatComeBackHaveTheirTime) {
  start_with({"a", "b", "c"}, {.report_window = Milliseconds(1000)});
  lose_connection("b");
  report_all({"a", "c"}, 7);
  pass(Milliseconds(1200));
  come_back("b");
  pass(Milliseconds(900));
  EXPECT_EQ(phase(), Phase::kChanging);
  report("b", 7);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
}

TEST_F(AbsenceTest, LossOfAllConnectionsIsNotTheEnd) {
  start_with({"a", "b", "c"});
  for (const char* member : {"a", "b", "c"}) lose_connection(member);
  EXPECT_EQ(phase(), Phase::kChanging);
  pass(Milliseconds(5000));
  for (const char* member : {"c", "a"}) {
    come_back(member);
    report(member, 9);
  }
  pass(Milliseconds(3000));
  come_back("b");
  report("b", 9);
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(view().lost, IsEmpty());
}

TEST_F(AbsenceTest, InAnOutageThoseThatComeBackTrainOn) {
  start_with({"a"});
  lose_connection("a");
  come_back("a");
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_EQ(view().generation, 1U);
  EXPECT_EQ(count<Freeze>("a"), 0U);
}

TEST_F(AbsenceTest, AfterAnOutageThoseThatStayAwayAreGivenUp) {
  start_with({"a", "b", "c"});
  for (const char* member : {"a", "b", "c"}) lose_connection(member);
  come_back("a");
  come_back("b");
  report_all({"a", "b"}, 9);
  pass(options_.return_window - Milliseconds(1));
  EXPECT_EQ(view().generation, 1U);
  pass(Milliseconds(2));
  EXPECT_THAT(members(), ElementsAre("a", "b"));
}

TEST_F(AbsenceTest, WhenNoMemberComesBackTheJobHasFailed) {
  start_with({"a", "b"});
  lose_connection("a");
  lose_connection("b");
  pass(options_.outage_window - Milliseconds(1));
  EXPECT_EQ(phase(), Phase::kChanging);
  pass(Milliseconds(2));
  EXPECT_EQ(phase(), Phase::kFailed);
}

/// The server was cut off for longer than connections last.
TEST_F(AbsenceTest, MembersThatComeBackAfterMinutesTrainOn) {
  start_with({"a", "b"});
  lose_connection("a");
  lose_connection("b");
  pass(std::chrono::minutes(4));
  come_back("a");
  come_back("b");
  report_all({"a", "b"}, 9);  // of the round that began when the first was lost
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_THAT(members(), ElementsAre("a", "b"));
}

/// Connections to hosts that cannot be reached end one after the other.
TEST_F(AbsenceTest, AMemberThatIsSilentInAnOutageIsAwaitedToo) {
  start_with({"a", "b", "c", "d"});
  silent_ = {"a", "b", "c", "d"};
  pass(std::chrono::seconds(10));
  lose_connection("a");
  EXPECT_EQ(count<Freeze>("b"), 0U) << "the members train on";
  pass(std::chrono::seconds(20));
  lose_connection("b");
  lose_connection("c");
  pass(std::chrono::seconds(100));
  silent_.clear();
  say("d", Heartbeat{view().generation, {}, 0});
  for (const char* member : {"a", "b", "c"}) come_back(member);
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_EQ(view().generation, 1U);
  pass(std::chrono::seconds(1));
  EXPECT_EQ(view().generation, 1U);
}

/// One connection is reset at once, and packets of the others are lost.
TEST_F(AbsenceTest, SilenceAfterAResetIsAnOutageToo) {
  start_with({"a", "b", "c"});
  silent_ = {"a", "b", "c"};
  lose_connection("a");
  pass(std::chrono::seconds(20));
  EXPECT_EQ(phase(), Phase::kChanging);
  EXPECT_EQ(view().members.size(), 3U) << "none is given up";
  silent_.clear();
  come_back("a");
  report_all({"a", "b", "c"}, 1);
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
}

TEST_F(AbsenceTest, OneThatIsHeardAgainBeginsTheTimeOfTheOthers) {
  start_with({"a", "b", "c"});
  silent_ = {"a", "b", "c"};
  pass(std::chrono::seconds(10));
  lose_connection("a");
  lose_connection("b");
  silent_ = {"a", "b"};
  say("c", Heartbeat{view().generation, {}, 0});
  pass(options_.return_window + Milliseconds(1));
  report_all({"c"}, 1);
  EXPECT_THAT(members(), ElementsAre("c"));
}

TEST_F(AbsenceTest, ProofOfAllEndsIsNotWaitedFor) {
  start_with({"a", "b"});
  lose_connection("a");
  lose_connection("b");
  decide(ProcessEnded{"a", "its launcher saw its process end"});
  decide(ProcessEnded{"b", "its launcher saw its process end"});
  EXPECT_EQ(phase(), Phase::kFailed);
}

TEST_F(AbsenceTest, MemberAtTheJobsEndMayHoldAResultAndIsAwaited) {
  start_with({"a", "b"});
  say("a", Bye{true});
  lose_connection("a");
  report("b", 6);
  EXPECT_EQ(view().generation, 1U);
  come_back("a");
  report("a", 7);
  EXPECT_THAT(members(), ElementsAre("a", "b"));
  EXPECT_EQ(view().lanes[0].takers, Names{"b"});
}

TEST_F(AbsenceTest, JoinerThatComesBackStillJoins) {
  start_with({"a"});
  ready({"a"});
  join("b");
  lose_connection("b");
  join("b");
  EXPECT_TRUE(last<Welcome>("b")->joining);
  ready({"b"});
  stop_at_boundary({"a"});
  EXPECT_THAT(members(), ElementsAre("a", "b"));
}

TEST_F(AbsenceTest, JoinerThatIsAwayWhenItsViewIsAnnouncedIsToldAgain) {
  start_with_joiner({"a", "b"}, "c");
  lose_connection("c");
  join("c");
  EXPECT_EQ(count<Announce>("c"), 2U);
  report_all({"a", "b", "c"});
  EXPECT_THAT(members(), ElementsAre("a", "b", "c"));
}

TEST_F(AbsenceTest, StatusTellsWhoIsDisconnected) {
  start_with({"a", "b"});
  lose_connection("b");
  const StatusReply status = membership_->status(now_);
  EXPECT_TRUE(status.progress.at(0).connected);
  EXPECT_FALSE(status.progress.at(1).connected);
}

TEST_F(MembershipTest, StatusHasWhatHeartbeatsTell) {
  start_with({"a", "b"});
  for (std::uint64_t second = 0; second <= 20; ++second) {
    say("a", Heartbeat{1, {2 * second, 5}, 10 * second, true, 1});
    say("b", Heartbeat{1, {2 * second, 5}, 10 * second, false, 1});
    now_ += Milliseconds(1000);
  }
  const StatusReply status = membership_->status(now_ - Milliseconds(1000));
  EXPECT_EQ(status.commits, 200U);
  EXPECT_NEAR(status.steps_per_second, 10, 0.1);
  EXPECT_EQ(status.slowest, 1);
  EXPECT_EQ(status.progress.at(0).operations, 45U);
  EXPECT_TRUE(status.progress.at(0).synced) << "though the view is from before that";
  EXPECT_FALSE(status.progress.at(1).synced);
}

TEST_F(AbsenceTest, SomeMembersOfALargeJobAreAskedWhetherOneHasEnded) {
  Names names;
  for (int i = 10; i < 40; ++i) names.push_back("w" + std::to_string(i));
  start_with(names);
  lose_connection("w15");
  Names asked;
  for (const std::string& name : names) {
    if (count<Check>(name) > 0) asked.push_back(name);
  }
  EXPECT_THAT(asked, SizeIs(4)) << "all are on one host";
  lose_connection(asked[0]);
  EXPECT_EQ(count<Check>(asked[1]), 2U);
  std::size_t now_asked = 0;
  for (const std::string& name : names) now_asked += count<Check>(name) > 0 ? 1U : 0U;
  EXPECT_EQ(now_asked, 5U) << "another one in place of that which is gone";
}

}  // namespace
}  // namespace elastic::rendezvous
