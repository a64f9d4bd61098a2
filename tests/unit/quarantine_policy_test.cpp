#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/protocol/slot_label.hpp"
#include "rendezvous/server/quarantine.hpp"

namespace elastic::rendezvous {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// A quarantine with a clock that the test moves. Hosts "a" and "b" are connected.
class QuarantinePolicyTest : public ::testing::Test {
 protected:
  void fail(const std::string& host, const std::string& label = "slot-1.0") {
    quarantine_.worker_failed(host, label, "exited with code 7", now_);
    update();
  }
  void fail_often(const std::string& host, int times) {
    for (int failed = 0; failed < times; ++failed) fail(host);
  }
  void update() {
    for (const auto& change : quarantine_.update(connected_, now_)) latest_ = change;
  }
  void pass(Duration time) {
    now_ += time;
    update();
  }
  bool paused(const std::string& host) const { return quarantine_.pause_of(host).has_value(); }
  /// The rest of the pause that is under way.
  Duration left(const std::string& host) const { return quarantine_.pause_of(host)->ends - now_; }
  void become_member(const std::string& label, const std::string& incarnation = "w") {
    View view;
    view.members = {{incarnation, {}, 0, label}};
    quarantine_.note_view(view, now_);
  }

  Quarantine quarantine_{{}};
  TimePoint now_ = TimePoint() + std::chrono::hours(100);
  Quarantine::Hosts connected_ = {"a", "b"};
  Quarantine::Change latest_{};
};

TEST_F(QuarantinePolicyTest, TheThirdFailureInAShortTimeBeginsAPause) {
  fail_often("b", 2);
  EXPECT_FALSE(paused("b"));
  pass(minutes(2));
  fail("b");
  ASSERT_TRUE(paused("b"));
  EXPECT_EQ(left("b"), minutes(1));
  EXPECT_EQ(quarantine_.next_end(), now_ + minutes(1));
  EXPECT_EQ(latest_.host, "b");
  EXPECT_EQ(latest_.pause, minutes(1));
  EXPECT_THAT(latest_.why,
              HasSubstr("3 failures of its workers lately, the latest: slot-1.0 exited "
                        "with code 7"));
  EXPECT_FALSE(paused("a"));
}

TEST_F(QuarantinePolicyTest, FailuresThatAreFarApartDoNot) {
  for (int failed = 0; failed < 10; ++failed) {
    fail("b");
    pass(minutes(10));
  }
  EXPECT_FALSE(paused("b"));
}

TEST_F(QuarantinePolicyTest, APauseEndsByItself) {
  fail_often("b", 3);
  pass(seconds(59));
  EXPECT_TRUE(paused("b"));
  pass(seconds(1));
  EXPECT_FALSE(paused("b"));
  EXPECT_EQ(latest_.pause, Milliseconds(0));
  EXPECT_EQ(quarantine_.next_end(), TimePoint::max());
}

TEST_F(QuarantinePolicyTest, EachFurtherFailureDoublesThePauseToHalfAnHour) {
  fail_often("b", 3);
  for (const int expected : {2, 4, 8, 16, 30, 30, 30}) {
    pass(left("b"));
    ASSERT_FALSE(paused("b"));
    fail("b");
    ASSERT_TRUE(paused("b"));
    EXPECT_EQ(left("b"), minutes(expected));
  }
  pass(left("b"));
  pass(minutes(25));
  fail("b");
  EXPECT_FALSE(paused("b")) << "a score does not grow beyond what the longest pause needs";
}

TEST_F(QuarantinePolicyTest, WhatFailsDuringAPauseWasStartedBeforeIt) {
  fail_often("b", 12);
  EXPECT_EQ(left("b"), minutes(1));
  pass(minutes(1));
  fail("b");
  EXPECT_EQ(left("b"), minutes(2));
}

TEST_F(QuarantinePolicyTest, AHostThatWorksAfterItsPauseIsForgiven) {
  fail_often("b", 3);
  pass(minutes(1));
  pass(minutes(12));
  fail("b");
  EXPECT_FALSE(paused("b"));
}

TEST_F(QuarantinePolicyTest, AWorkerThatWasAMemberForAMinuteSaysNothingAboutItsHost) {
  for (int died = 0; died < 5; ++died) {
    become_member("slot-1.0");
    now_ += minutes(1);
    fail("b");
  }
  EXPECT_FALSE(paused("b"));
  for (int died = 0; died < 3; ++died) {
    become_member("slot-1.0");
    now_ += seconds(59);
    fail("b");
  }
  EXPECT_TRUE(paused("b"));
}

TEST_F(QuarantinePolicyTest, AWorkerIsNotTakenForTheOneBeforeIt) {
  become_member("slot-1.0");
  now_ += minutes(5);
  quarantine_.worker_ended("slot-1.0");
  EXPECT_FALSE(quarantine_.was_member("slot-1.0"));
  fail_often("b", 2);

  become_member("slot-1.1");
  now_ += minutes(1);
  quarantine_.note_launcher(1);
  fail("b", "slot-1.1");
  EXPECT_TRUE(paused("b")) << "the launcher that had a member of this name is gone";
}

TEST_F(QuarantinePolicyTest, AMemberThatCameBackIsANewOne) {
  become_member("slot-1.0", "before");
  now_ += minutes(5);
  become_member("slot-1.0", "after");
  fail_often("b", 3);
  EXPECT_TRUE(paused("b"));
}

TEST_F(QuarantinePolicyTest, EvictionsFromOneViewAreOneFailure) {
  for (const std::uint64_t generation : {1U, 1U, 1U, 1U, 2U, 2U}) {
    quarantine_.evicted("b", generation, "slot-1.0 was given up: no heartbeat", now_);
    update();
  }
  EXPECT_FALSE(paused("b"));
  quarantine_.evicted("b", 3, "slot-1.0 was given up: no heartbeat", now_);
  update();
  EXPECT_TRUE(paused("b"));
  EXPECT_THAT(latest_.why, HasSubstr("the latest: slot-1.0 was given up: no heartbeat"));
}

TEST_F(QuarantinePolicyTest, AHostAloneIsNotPaused) {
  connected_ = {"b"};
  fail_often("b", 5);
  EXPECT_FALSE(paused("b"));
  connected_ = {"a", "b"};
  update();
  EXPECT_FALSE(paused("b")) << "what was is no reason, but it counts";
  fail("b");
  EXPECT_TRUE(paused("b"));
}

TEST_F(QuarantinePolicyTest, TheLastHostIsNotPausedAndComesBackIfTheOthersGo) {
  fail_often("b", 3);
  fail_often("a", 5);
  EXPECT_FALSE(paused("a"));
  connected_ = {"b"};
  update();
  EXPECT_FALSE(paused("b"));
  EXPECT_EQ(latest_.why, "no other host takes workers");
}

TEST_F(QuarantinePolicyTest, OfHostsThatAreAllPausedTheFirstToEndComesBack) {
  connected_ = {"a", "b", "c"};
  fail_often("b", 3);
  now_ += seconds(10);
  fail_often("c", 3);
  connected_ = {"b", "c"};
  update();
  EXPECT_FALSE(paused("b"));
  EXPECT_TRUE(paused("c"));
}

TEST_F(QuarantinePolicyTest, AHostThatIsForgottenBeginsAnew) {
  fail_often("b", 3);
  EXPECT_TRUE(quarantine_.forget("b"));
  EXPECT_FALSE(paused("b"));
  EXPECT_FALSE(quarantine_.forget("b"));
  fail_often("b", 2);
  EXPECT_FALSE(paused("b"));
}

TEST_F(QuarantinePolicyTest, IsSwitchedOffByAPauseOfNothing) {
  quarantine_ = Quarantine({.first_pause = Milliseconds(0)});
  fail_often("b", 20);
  EXPECT_FALSE(paused("b"));
}

TEST(SlotLabel, IsReadAsItIsWritten) {
  EXPECT_EQ(slot_label({2, 1}), "slot-2.1");
  EXPECT_EQ(slot_label({0, 3}), "slot-3");
  EXPECT_EQ(parse_slot_label("slot-2.1"), (Slot{2, 1}));
  EXPECT_EQ(parse_slot_label("slot-3"), (Slot{0, 3}));
  for (const char* other :
       {"", "slot-", "slot-x", "slot-1.", "slot-.1", "slot-1.2.3", "worker-1"}) {
    EXPECT_EQ(parse_slot_label(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace elastic::rendezvous
