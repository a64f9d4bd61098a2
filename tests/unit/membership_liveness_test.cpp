#include "membership_fixture.hpp"
#include "rendezvous/membership/liveness.hpp"

namespace elastic::rendezvous {
namespace {

using SilenceTest = MembershipTest;

TEST_F(SilenceTest, SilentMemberIsGivenUp) {
  start_with({"a", "b"});
  silent_.insert("b");
  pass(Milliseconds(490));
  EXPECT_EQ(phase(), Phase::kRunning);
  pass(Milliseconds(20));
  EXPECT_FALSE(connected_.contains("b"));
  report("a");
  EXPECT_THAT(members(), ElementsAre("a"));
  EXPECT_THAT(view().cause, HasSubstr("no heartbeat for 500 ms"));
}

TEST_F(SilenceTest, AnyMessageCountsAsLife) {
  start_with({"a"});
  silent_.insert("a");
  for (int i = 0; i < 10; ++i) {
    pass(Milliseconds(40));
    say("a", Suspect{9, "a", ""});
  }
  pass(Milliseconds(400));
  EXPECT_EQ(phase(), Phase::kRunning);
}

TEST_F(SilenceTest, AbsentServerEvictsNoMember) {
  start_with({"a", "b"});
  die("b");
  now_ += Milliseconds(5000);
  decide(Tick{});
  EXPECT_EQ(phase(), Phase::kChanging) << "neither silence nor the report window counts";
  EXPECT_TRUE(connected_.contains("a"));
  report("a");
  EXPECT_THAT(members(), ElementsAre("a"));
}

TEST_F(SilenceTest, AbsentServerStillMeetsItsOtherDeadlines) {
  start_with({"a", "b"});
  say("a", Bye{true});
  now_ += Milliseconds(5000);
  decide(Tick{});
  EXPECT_EQ(phase(), Phase::kChanging) << "the grace has run out all the same";
  EXPECT_GT(membership_->next_tick(), now_);
}

/// The first that a server hears after it was cut off may be a replacement for a member that has
/// died meanwhile: those that live are later, as TCP sends again at growing intervals.
TEST_F(SilenceTest, WorkerThatRegistersEndsASilenceOfAll) {
  start_with({"a", "b", "c"});
  silent_ = {"a", "b", "c"};
  pass(Milliseconds(400));
  die("c");
  join("d");
  pass(Milliseconds(1200));
  EXPECT_TRUE(connected_.contains("a") && connected_.contains("b")) << "as if all were that late";
  pass(Milliseconds(600));
  EXPECT_FALSE(connected_.contains("a"));
}

/// A worker that waits to join is heard, and has not what would be lost.
TEST_F(SilenceTest, MemberWithoutWhichTheStateWouldBeLostIsBorne) {
  start_with({"a", "b"});
  die("b");
  report("a", 0, 1, /*synced=*/true);
  join("c");
  silent_.insert("a");
  pass(Milliseconds(59'000));
  EXPECT_TRUE(connected_.contains("a"));
  EXPECT_EQ(phase(), Phase::kRunning) << reasons_;
  pass(Milliseconds(2'000));
  EXPECT_FALSE(connected_.contains("a")) << "not for ever";
}

TEST_F(SilenceTest, MemberIsGivenUpWhereAnotherOneHasTheState) {
  start_with({"a", "b", "c"});
  die("c");
  report_all({"a", "b"}, 0, 1, /*synced=*/true);
  join("d");
  silent_.insert("a");
  pass(Milliseconds(600));
  EXPECT_FALSE(connected_.contains("a"));
  silent_.insert("b");
  report("b", 0, 1, /*synced=*/true);
  pass(Milliseconds(2'000));
  EXPECT_TRUE(connected_.contains("b"));
}

TEST_F(SilenceTest, ReportWithoutWhichTheStateWouldBeLostIsAwaited) {
  start_with({"a", "b", "c"});
  die("c");
  report_all({"a", "b"}, 0, 1, /*synced=*/true);
  join("d");
  silent_.insert("a");
  die("b");
  pass(Milliseconds(20'000));
  ASSERT_TRUE(connected_.contains("a")) << reasons_;
  silent_.erase("a");
  report("a", 0, 1, /*synced=*/true);
  EXPECT_THAT(members(), ElementsAre("a"));
}

class LivenessTest : public testing::Test {
 protected:
  static TimePoint at(int ms) { return TimePoint(std::chrono::hours(1)) + Milliseconds(ms); }
  /// Heartbeats in time.
  void hear(const std::string& incarnation, int from_ms, int to_ms) {
    for (int ms = from_ms; ms <= to_ms; ms += 50) liveness_.heard(incarnation, at(ms));
  }
  Liveness liveness_{Milliseconds(50), Milliseconds(500)};
};

TEST_F(LivenessTest, GoesWhenTheLimitIsReached) {
  EXPECT_EQ(liveness_.deadline(at(0)), TimePoint::max());
  liveness_.watch("a", at(0));
  EXPECT_EQ(liveness_.deadline(at(0)), at(500));
  liveness_.watch("b", at(0));
  hear("b", 50, 450);
  EXPECT_THAT(liveness_.silent(at(499)), SizeIs(0));
  EXPECT_THAT(liveness_.silent(at(500)), SizeIs(1));
  liveness_.forget("a");
  EXPECT_THAT(liveness_.silent(at(500)), SizeIs(0));
}

TEST_F(LivenessTest, AServerThatHearsNoMemberBlamesNone) {
  liveness_.watch("a", at(0));
  liveness_.watch("b", at(40));
  EXPECT_THAT(liveness_.silent(at(520)), SizeIs(0));
  EXPECT_EQ(liveness_.deadline(at(520)), at(1020));
  liveness_.heard("b", at(3000));
  EXPECT_THAT(liveness_.silent(at(3000)), SizeIs(0)) << "a has its time again";
  hear("b", 3050, 7950);
  EXPECT_THAT(liveness_.silent(at(7999)), SizeIs(0)) << "it may be later than b was";
  EXPECT_THAT(liveness_.silent(at(8000)), SizeIs(1));
}

TEST_F(LivenessTest, WhereAllAreLateHalfOfTheWiderLimitIsNoDeafness) {
  liveness_.watch("a", at(0));
  liveness_.watch("b", at(0));
  liveness_.heard("a", at(150));  // 100 ms late: the limit is 900 ms now, and gets shorter again
  liveness_.heard("a", at(550));
  EXPECT_EQ(liveness_.age("b", at(550)), Milliseconds(550)) << "its time has not begun again";
  EXPECT_TRUE(liveness_.tick(at(600), at(1000)));
}

TEST_F(LivenessTest, AServerIsNotDeafForEver) {
  liveness_.watch("a", at(0));
  EXPECT_THAT(liveness_.silent(at(59999)), SizeIs(0));
  EXPECT_THAT(liveness_.silent(at(60000)), SizeIs(1));
}

TEST_F(LivenessTest, ReportsOfOthersAboutAMemberCount) {
  liveness_.watch("a", at(0));
  liveness_.lived("a", at(300));
  liveness_.lived("a", at(200));
  liveness_.watch("b", at(0));
  hear("b", 50, 600);
  EXPECT_EQ(liveness_.deadline(at(600)), at(800));
  EXPECT_THAT(liveness_.silent(at(799)), SizeIs(0));
  const auto silent = liveness_.silent(at(800));
  ASSERT_THAT(silent, SizeIs(1));
  EXPECT_EQ(silent.front().silence, Milliseconds(800)) << "its own";
  liveness_.heard("a", at(800));
  EXPECT_EQ(liveness_.slack(at(800)), Milliseconds(3000)) << "750 ms late, whatever others told";
}

TEST_F(LivenessTest, LateHeartbeatsOfAnyMemberWidenTheLimitForAll) {
  liveness_.watch("a", at(0));
  liveness_.watch("b", at(0));
  liveness_.heard("a", at(150));  // 100 ms late
  EXPECT_EQ(liveness_.slack(at(150)), Milliseconds(400));
  EXPECT_EQ(liveness_.deadline(at(150)), at(900));
  EXPECT_EQ(liveness_.slack(at(5150)), Milliseconds(200)) << "decays over ten seconds";
  EXPECT_EQ(liveness_.slack(at(10150)), Milliseconds(0));
}

TEST_F(LivenessTest, TheLimitIsCapped) {
  liveness_.watch("a", at(0));
  liveness_.heard("a", at(60000));
  EXPECT_EQ(liveness_.slack(at(60000)), Milliseconds(4500));
}

TEST_F(LivenessTest, LateTicksWidenTheLimitAndVeryLateOnesRestartIt) {
  liveness_.watch("a", at(0));
  EXPECT_TRUE(liveness_.tick(at(500), at(600)));
  EXPECT_EQ(liveness_.slack(at(600)), Milliseconds(400));
  EXPECT_THAT(liveness_.silent(at(600)), SizeIs(0));
  EXPECT_FALSE(liveness_.tick(at(900), at(1400)));
  EXPECT_EQ(liveness_.age("a", at(1400)), Milliseconds(0));
}

}  // namespace
}  // namespace elastic::rendezvous
