// Joiners with a line so slow that the members would wait long for them.
#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

class SlowJoinerTest : public MembershipTest {
 protected:
  static MembershipOptions one_second() {
    MembershipOptions options;
    options.max_join_stall = Milliseconds(1000);
    return options;
  }
  Decision join_from(const std::string& host, const std::string& worker) {
    connected_.insert(worker);
    Register registration;
    registration.incarnation = worker;
    registration.endpoints.host = host;
    return decide(Registered{registration});
  }
  Decision ready_in(const std::string& worker, std::uint64_t transfer_ms) {
    return say(worker, Ready{kLayout, transfer_ms});
  }
};

TEST_F(SlowJoinerTest, WaitsAndIsToldWhy) {
  start_with({"a", "b"}, one_second());
  ready({"a", "b"});
  join_from("elsewhere", "c");
  ready_in("c", 20040);
  EXPECT_EQ(phase(), Phase::kRunning) << "the members are left alone";
  ASSERT_TRUE(last<Wait>("c"));
  EXPECT_EQ(last<Wait>("c")->reason,
            "a faster line: receiving the state would take about 20.0 s on this one, and the "
            "members wait 1.0 s at most (--max-join-stall-ms)");
  const StatusReply status = membership_->status(now_);
  ASSERT_EQ(status.joiners.size(), 1U);
  EXPECT_EQ(status.joiners[0].waits_for, last<Wait>("c")->reason);
  EXPECT_THAT(reasons_, HasSubstr("worker c waits for a faster line"));
}

TEST_F(SlowJoinerTest, IsToldOncePerReady) {
  start_with({"a"}, one_second());
  ready({"a"});
  join_from("elsewhere", "b");
  ready_in("b", 2000);
  pass(Milliseconds(500));
  EXPECT_EQ(count<Wait>("b"), 1U);
  ready_in("b", 3000);
  EXPECT_EQ(count<Wait>("b"), 2U);
  EXPECT_THAT(last<Wait>("b")->reason, HasSubstr("about 3.0 s"));
}

TEST_F(SlowJoinerTest, IsAdmittedWhenItsLineHasBecomeFasterUpToTheLimit) {
  start_with({"a"}, one_second());
  ready({"a"});
  join_from("elsewhere", "b");
  ready_in("b", 1001);
  EXPECT_EQ(phase(), Phase::kRunning);
  ready_in("b", 1000);
  EXPECT_EQ(phase(), Phase::kChanging);
  EXPECT_THAT(membership_->status(now_).joiners.at(0).waits_for, IsEmpty());
  stop_at_boundary({"a"});
  EXPECT_THAT(members(), ElementsAre("a", "b"));
  EXPECT_EQ(count<Wait>("b"), 1U);
}

TEST_F(SlowJoinerTest, DoesNotKeepOthersOut) {
  start_with({"a"}, one_second());
  ready({"a"});
  for (const char* joiner : {"slow", "fast"}) join_from("elsewhere", joiner);
  ready_in("slow", 5000);
  ready_in("fast", 5);
  stop_at_boundary({"a"});
  EXPECT_THAT(members(), ElementsAre("a", "fast"));
  EXPECT_EQ(phase(), Phase::kRunning);
}

TEST_F(SlowJoinerTest, IsTakenWhereTheMembersWaitAnyway) {
  MembershipOptions options = one_second();
  options.min_np = 2;
  start_with({"a", "b"}, options);
  ready({"a", "b"});
  join_from("elsewhere", "c");
  ready_in("c", 60000);
  EXPECT_EQ(phase(), Phase::kRunning);
  die("b");
  report("a", 0, 3, true);
  ASSERT_TRUE(view().below_minimum);
  stop_at_boundary({"a"});
  EXPECT_THAT(members(), ElementsAre("a", "c"));
}

TEST_F(SlowJoinerTest, ATransferOfAnyLengthIsJustTooLong) {
  start_with({"a"}, one_second());
  ready({"a"});
  join("b");
  ready_in("b", std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(phase(), Phase::kRunning);
  EXPECT_TRUE(last<Wait>("b"));
}

TEST_F(SlowJoinerTest, DonorsAreMembersOnOtherHostsInTurn) {
  MembershipOptions options = one_second();
  options.initial_np = 3;
  start(options);
  join_from("here", "a");
  join_from("there", "b");
  join_from("there", "c");
  EXPECT_FALSE(last<Welcome>("a")->donor) << "it is no joiner";
  ready({"a", "b", "c"});
  join_from("here", "d");
  EXPECT_EQ(last<Welcome>("d")->donor->incarnation, "b");
  ready_in("d", 5000);
  EXPECT_EQ(last<Wait>("d")->donor->incarnation, "c");
  ready_in("d", 5000);
  EXPECT_EQ(last<Wait>("d")->donor->incarnation, "b");
  die("b");
  report_all({"a", "c"}, 0, 0, true);
  ready_in("d", 5000);
  EXPECT_EQ(last<Wait>("d")->donor->incarnation, "c");
}

TEST_F(SlowJoinerTest, NoMemberIsADonorWhereAllAreOnTheJoinersHost) {
  start_with({"a", "b"}, one_second());
  join("c");
  EXPECT_TRUE(last<Welcome>("c")->joining);
  EXPECT_FALSE(last<Welcome>("c")->donor);
}

}  // namespace
}  // namespace elastic::rendezvous
