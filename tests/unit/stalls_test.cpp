#include "rendezvous/membership/stalls.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::rendezvous {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A member that is in `kind` after `completed` unnamed calls, or has `tensor` under way.
Heartbeat member(std::uint64_t completed, const std::string& kind, const std::string& tensor = "") {
  Heartbeat heartbeat{1, {completed, 0}};
  heartbeat.calls = {{kind, ""}, {"", tensor}};
  if (!tensor.empty()) heartbeat.calls->back().text = "named allreduce '" + tensor + "'";
  return heartbeat;
}

/// A member that has submitted an alltoall to a group of these ranges of ranks.
Heartbeat member_in(const std::vector<std::uint64_t>& ranges, const std::string& name) {
  Heartbeat heartbeat = member(20, "", "mark/:" + name);
  heartbeat.calls->back().text = "named alltoall '" + name + "' of the group 'some'";
  heartbeat.calls->back().ranks = ranges;
  return heartbeat;
}

class StallsTest : public testing::Test {
 protected:
  /// Looks every 100 ms, for so long. Returns what was said meanwhile.
  std::vector<std::string> look(const std::vector<Heartbeat>& members, int for_ms) {
    std::vector<const Heartbeat*> all;
    for (const Heartbeat& one : members) all.push_back(&one);
    std::vector<std::string> warnings;
    for (int passed = 0; passed < for_ms; passed += 100) {
      const Stalls::Verdict verdict = stalls_.look(all, limits_, now_);
      warnings.insert(warnings.end(), verdict.warnings.begin(), verdict.warnings.end());
      if (!verdict.stall.empty()) last_stall_ = verdict.stall;
      if (failure_.empty()) failure_ = verdict.failure;
      now_ += Milliseconds(100);
    }
    return warnings;
  }

  Stalls stalls_{Milliseconds(500)};
  Stalls::Limits limits_{Milliseconds(1000), Milliseconds(0)};
  TimePoint now_{std::chrono::hours(1)};
  std::string failure_;
  std::string last_stall_;  ///< for which the members write their operations
};

TEST_F(StallsTest, TellsWhoHasNotEnteredAgainWhenItHasLastedTwiceAsLong) {
  const std::vector<Heartbeat> members{member(20, "allreduce"), member(20, ""),
                                       member(20, "allreduce"), member(20, "")};
  EXPECT_THAT(look(members, 1000), IsEmpty());
  EXPECT_THAT(look(members, 4000),
              ElementsAre("ranks 1 and 3 have not entered allreduce #21 for 1.0 s; they have "
                          "completed 20 calls",
                          "ranks 1 and 3 have not entered allreduce #21 for 2.0 s; they have "
                          "completed 20 calls",
                          "ranks 1 and 3 have not entered allreduce #21 for 4.0 s; they have "
                          "completed 20 calls"));
  EXPECT_THAT(std::exchange(last_stall_, ""), testing::HasSubstr("allreduce #21 for 4.0 s"));
  EXPECT_THAT(look({member(21, ""), member(20, "allreduce"), member(21, ""), member(21, "")}, 100),
              ElementsAre("the job goes on: allreduce #21 was waited for 4.9 s"));
  EXPECT_EQ(last_stall_, "") << "the end of one is no reason to write them again";
}

TEST_F(StallsTest, ACallThatAllHaveEnteredIsNone) {
  EXPECT_THAT(look({member(20, "allreduce"), member(20, "allreduce")}, 5000), IsEmpty());
  EXPECT_THAT(look({member(21, "barrier"), member(20, "broadcast"), member(21, "")}, 5000),
              IsEmpty());
  EXPECT_THAT(look({member(21, "", "grad"), member(21, "", "grad")}, 5000), IsEmpty());
  EXPECT_THAT(look({member(21, ""), member(21, "")}, 5000), IsEmpty());
}

TEST_F(StallsTest, SaysWhatEachIsIn) {
  EXPECT_THAT(look({member(20, "", "grad"), member(20, "allreduce"), member(20, "")}, 1100),
              ElementsAre("rank 0 waits in named allreduce 'grad', rank 1 in allreduce #21, for "
                          "1.0 s; rank 2 is in no call"));
}

TEST_F(StallsTest, OnlyTheMembersOfAGroupAreMissingInItsCall) {
  const Heartbeat idle = member(20, "");
  EXPECT_THAT(
      look({member_in({0, 0, 2, 3}, "x"), idle, idle, idle}, 1100),
      ElementsAre("ranks 2 and 3 have not entered named alltoall 'x' of the group 'some' of "
                  "ranks 0, 2 and 3 for 1.0 s; they are in no call"));
}

/// It waits for its turn, in a call of others for instance.
TEST_F(StallsTest, ACallThatAllOfAGroupHaveSubmittedIsNone) {
  const Heartbeat idle = member(20, "");
  const Heartbeat in_group = member_in({1, 2}, "x");
  EXPECT_THAT(look({idle, in_group, in_group, idle}, 5000), IsEmpty());
  EXPECT_THAT(
      look({member_in({0, 0, 3, 3}, "y"), in_group, in_group, idle}, 1100),
      ElementsAre("rank 3 has not entered named alltoall 'y' of the group 'some' of ranks 0 "
                  "and 3 for 1.0 s; it is in no call"));
}

TEST_F(StallsTest, PrefersTheCallThatAMemberLacksToThoseThatWaitForEachOther) {
  const Heartbeat idle = member(20, "");
  EXPECT_THAT(
      look({member_in({0, 1}, "x"), member_in({1, 2}, "y"), idle}, 1100),
      ElementsAre("rank 2 has not entered named alltoall 'y' of the group 'some' of ranks 1 "
                  "and 2 for 1.0 s; it is in no call"));
}

/// A heartbeat may have any numbers.
TEST_F(StallsTest, RanksThatAreNoneAreLeftOut) {
  EXPECT_THAT(look({member_in({0, 1, 7, ~0ULL}, "x"), member(20, "")}, 1100),
              ElementsAre(testing::HasSubstr("rank 1 has not entered named alltoall 'x'")));
}

TEST_F(StallsTest, AMemberInJoinIsWaitedForOnlyInACallWithoutAName) {
  const Heartbeat joined = member(20, "", "elastic.join");
  EXPECT_THAT(look({joined, member(20, ""), joined}, 5000), IsEmpty());
  EXPECT_THAT(look({joined, member(20, "", "grad"), member(20, "", "grad")}, 5000), IsEmpty());
  EXPECT_THAT(look({member(20, "allreduce"), joined}, 1100),
              ElementsAre("rank 0 waits in allreduce #21, rank 1 in join, for 1.0 s"));
}

TEST_F(StallsTest, FailsAfterTheTimeout) {
  limits_ = {Milliseconds(0), Milliseconds(2000)};
  const std::vector<Heartbeat> members{member(20, ""), member(20, "", "grad")};
  EXPECT_THAT(look(members, 2000), IsEmpty());
  EXPECT_EQ(failure_, "");
  look(members, 100);
  EXPECT_EQ(failure_, "rank 0 has not entered named allreduce 'grad' for 2.0 s; it is in no call");
}

TEST_F(StallsTest, TimeInWhichNoHeartbeatCouldTellDoesNotCount) {
  const std::vector<Heartbeat> members{member(20, "allreduce"), member(20, "")};
  look(members, 500);
  stalls_.pause();
  now_ += Milliseconds(5000);
  EXPECT_THAT(look(members, 500), IsEmpty()) << "a view change";
  now_ += Milliseconds(5000);
  EXPECT_THAT(look(members, 100), ElementsAre(testing::HasSubstr("for 1.3 s"))) << "a standstill";
}

TEST_F(StallsTest, AMemberOfAnEarlierReleaseTellsNothing) {
  EXPECT_THAT(look({member(20, "allreduce"), Heartbeat{1, {20, 0}}}, 5000), IsEmpty());
}

}  // namespace
}  // namespace elastic::rendezvous
