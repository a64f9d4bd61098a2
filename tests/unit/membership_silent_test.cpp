// Members that are given up because they do not answer: whose processes are to be ended for that.
#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

class SilentMemberTest : public MembershipTest {
 protected:
  /// Workers a, b and c of a launcher, with processes 70, 71 and 72, on these hosts.
  void start_on(const Names& hosts, std::optional<bool> end_if_silent = true) {
    end_if_silent_ = end_if_silent;
    hosts_ = hosts;
    MembershipOptions options;
    options.initial_np = 3;
    start(options);
    for (std::size_t slot = 0; slot < 3; ++slot) register_in(slot, 0);
    ASSERT_THAT(members(), ElementsAre("a", "b", "c"));
  }
  void start_three() { start_on({"h", "h", "h"}); }
  void register_in(std::size_t slot, std::uint64_t generation) {
    Register registration;
    registration.incarnation = std::string(1, static_cast<char>('a' + slot));
    registration.label = "slot-" + std::to_string(slot % 3);
    registration.pid = 70 + static_cast<int>(slot);
    registration.order = static_cast<int>(slot);
    registration.generation = generation;
    registration.end_if_silent = end_if_silent_;
    registration.endpoints.host = hosts_[slot % 3];
    connected_.insert(registration.incarnation);
    decide(Registered{registration});
  }
  void expect_only_b_to_end(const std::string& why) const {
    ASSERT_EQ(to_end_.size(), 1U);
    EXPECT_EQ(to_end_[0].label, "slot-1");
    EXPECT_EQ(to_end_[0].pid, 71);
    EXPECT_THAT(to_end_[0].why, HasSubstr(why));
  }

  std::optional<bool> end_if_silent_;
  Names hosts_;
};

TEST_F(SilentMemberTest, IsEndedWithoutHeartbeats) {
  start_three();
  silent_.insert("b");
  pass(Milliseconds(600));
  expect_only_b_to_end("no heartbeat for 500 ms");
}

TEST_F(SilentMemberTest, IsEndedWithoutAReport) {
  start_three();
  say("a", Suspect{1, "b", "reset"});
  report_all({"a", "c"});
  pass(Milliseconds(1100));
  expect_only_b_to_end("did not report");
}

/// As one that is frozen while the server is started again on another address.
TEST_F(SilentMemberTest, IsEndedIfItDoesNotComeBack) {
  start_three();
  lose_connection("b");
  report_all({"a", "c"});
  pass(Milliseconds(1600));
  expect_only_b_to_end("did not come back");
}

TEST_F(SilentMemberTest, IsEndedIfItDoesNotComeBackToARestartedServer) {
  start_three();
  restart({view(), view().generation + 1, {}});
  register_in(0, 1);
  register_in(2, 1);
  pass(Milliseconds(5100));
  expect_only_b_to_end("did not come back");
}

TEST_F(SilentMemberTest, StaysWhereItsBackendDoesNotAskForItsEnd) {
  for (const std::optional<bool> wish : {std::optional<bool>(), std::optional<bool>(false)}) {
    start_on({"h", "h", "h"}, wish);
    silent_ = {"b"};
    pass(Milliseconds(600));
    EXPECT_FALSE(connected_.contains("b")) << "it was given up";
    EXPECT_TRUE(to_end_.empty());
    silent_.clear();
  }
}

TEST_F(SilentMemberTest, ThoseThatDieOrAreGivenUpForAnotherReasonAreLeftAlone) {
  start_three();
  die("b");
  report_all({"a", "c"});
  EXPECT_THAT(members(), ElementsAre("a", "c"));
  say("c", Announce{});  // evicted: this is not a worker's to send
  EXPECT_FALSE(connected_.contains("c"));
  EXPECT_TRUE(to_end_.empty());
}

TEST_F(SilentMemberTest, IsLeftAloneIfItIsAloneOnItsHost) {
  start_on({"h", "other", "h"});
  silent_.insert("b");
  pass(Milliseconds(600));
  EXPECT_FALSE(connected_.contains("b"));
  EXPECT_TRUE(to_end_.empty());
}

/// Its workers wake up together, and register as other incarnations.
TEST_F(SilentMemberTest, IsLeftAloneIfItsWholeHostIsSilent) {
  start_on({"h", "h", "other"});
  silent_ = {"a", "b"};
  pass(Milliseconds(600));
  EXPECT_FALSE(connected_.contains("a") || connected_.contains("b"));
  register_in(3, 0);
  register_in(4, 0);
  pass(Milliseconds(600));
  EXPECT_TRUE(to_end_.empty());
}

TEST_F(SilentMemberTest, AJoinerIsLeftAlone) {
  start_three();
  register_in(3, 0);
  silent_.insert("d");
  pass(Milliseconds(600));
  EXPECT_FALSE(connected_.contains("d"));
  EXPECT_TRUE(to_end_.empty());
}

}  // namespace
}  // namespace elastic::rendezvous
