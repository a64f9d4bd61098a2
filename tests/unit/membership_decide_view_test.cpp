#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/membership/decide_view.hpp"

namespace elastic::rendezvous {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// A view of one lane with members a, b, c, …, and the question what comes after it.
class DecideViewTest : public testing::Test {
 protected:
  explicit DecideViewTest(std::size_t members = 4) {
    current_.generation = 7;
    current_.lanes.resize(1);
    for (std::size_t i = 0; i < members; ++i) {
      Member member;
      member.incarnation = std::string(1, static_cast<char>('a' + i));
      current_.members.push_back(member);
    }
  }
  void report(std::size_t rank, std::uint64_t position, const std::string& needs = "",
              bool leaving = false) {
    Report report;
    report.lanes = {{position, needs}};
    question_.reporters.push_back({current_.members[rank], report, leaving});
  }
  ViewAnswer decide() {
    question_.generation = current_.generation + 1;
    return decide_view(question_);
  }
  static std::vector<std::string> names(const View& view) {
    std::vector<std::string> result;
    for (const Member& member : view.members) result.push_back(member.incarnation);
    return result;
  }

  View current_;
  ViewQuestion question_{current_, 0, {}, {}, 0, {}};
};

TEST_F(DecideViewTest, ReplaysAnOperationThatNoMemberHasCompleted) {
  report(0, 5);
  report(2, 5);
  const View next = decide().view;
  EXPECT_EQ(next.generation, 8U);
  EXPECT_THAT(names(next), ElementsAre("a", "c"));
  EXPECT_THAT(next.lost, ElementsAre("b", "d"));
  EXPECT_EQ(next.lanes[0].position, 5U);
  EXPECT_THAT(next.lanes[0].holders, IsEmpty());
  EXPECT_THAT(next.lanes[0].takers, IsEmpty());
}

TEST_F(DecideViewTest, CommitsAnOperationThatAMemberHasCompleted) {
  report(0, 4);
  report(1, 5);
  report(2, 4);
  const LaneDecision lane = decide().view.lanes[0];
  EXPECT_EQ(lane.position, 5U);
  EXPECT_THAT(lane.holders, ElementsAre("b"));
  EXPECT_THAT(lane.takers, ElementsAre("a", "c"));
}

TEST_F(DecideViewTest, BroadcastWithoutItsRootIsLost) {
  report(0, 5);
  report(1, 5, "d");
  EXPECT_TRUE(decide().view.lanes[0].lost);
}

TEST_F(DecideViewTest, BroadcastWhoseRootLivesIsReplayed) {
  report(0, 5);
  report(1, 5, "a");
  EXPECT_FALSE(decide().view.lanes[0].lost);
}

TEST_F(DecideViewTest, BroadcastThatAMemberCompletedIsCommitted) {
  report(0, 4, "d");
  report(1, 5);
  const LaneDecision lane = decide().view.lanes[0];
  EXPECT_FALSE(lane.lost);
  EXPECT_THAT(lane.takers, ElementsAre("a"));
}

TEST_F(DecideViewTest, NextBroadcastOfAHolderIsLostThoughOthersTakeTheOneBefore) {
  report(0, 4);
  report(1, 5, "d");
  const LaneDecision lane = decide().view.lanes[0];
  EXPECT_TRUE(lane.lost);
  EXPECT_EQ(lane.position, 5U);
  EXPECT_THAT(lane.takers, ElementsAre("a"));
}

TEST_F(DecideViewTest, WhoIsTooFarBehindIsEvicted) {
  report(0, 3);
  report(1, 5);
  report(2, 4);
  const ViewAnswer answer = decide();
  EXPECT_THAT(names(answer.view), ElementsAre("b", "c"));
  ASSERT_THAT(answer.evicted, SizeIs(1));
  EXPECT_EQ(answer.evicted[0].incarnation, "a");
  EXPECT_THAT(answer.evicted[0].reason, HasSubstr("is 2 operations behind"));
  EXPECT_THAT(answer.view.lost, ElementsAre("a", "d"));
}

TEST_F(DecideViewTest, LeaverGoesWhenAStayerHasTheResult) {
  report(0, 5, "", true);
  report(1, 5);
  report(2, 4);
  const ViewAnswer answer = decide();
  EXPECT_THAT(names(answer.view), ElementsAre("b", "c"));
  EXPECT_THAT(answer.view.left, ElementsAre("a"));
  EXPECT_THAT(answer.view.lost, ElementsAre("d"));
  EXPECT_THAT(answer.retained, IsEmpty());
}

TEST_F(DecideViewTest, LeaverStaysWhenOnlyItHasTheResult) {
  report(0, 5, "", true);
  report(1, 4, "", true);
  report(2, 4);
  const ViewAnswer answer = decide();
  EXPECT_THAT(names(answer.view), ElementsAre("a", "c")) << "b has nothing that is needed";
  EXPECT_THAT(answer.retained, ElementsAre("a"));
  EXPECT_THAT(answer.view.lanes[0].takers, ElementsAre("c"));
}

TEST_F(DecideViewTest, ALeaversBroadcastIsLost) {
  report(0, 5, "", true);
  report(1, 5, "a");
  EXPECT_TRUE(decide().view.lanes[0].lost);
}

TEST_F(DecideViewTest, AdmitsJoinersUpToTheMaximum) {
  report(0, 5);
  report(1, 5);
  for (const char* name : {"x", "y", "z"}) {
    Member joiner;
    joiner.incarnation = name;
    joiner.synced = true;
    question_.joiners.push_back(joiner);
  }
  question_.max_members = 4;
  const View next = decide().view;
  EXPECT_THAT(names(next), ElementsAre("a", "b", "x", "y"));
  EXPECT_THAT(next.joined, ElementsAre("x", "y"));
  EXPECT_FALSE(next.members[2].synced);
}

/// A joiner would start after a result that it does not have.
TEST_F(DecideViewTest, NoWorkerJoinsWhileAMemberLacksAResult) {
  report(0, 5);
  report(1, 4);
  Member joiner;
  joiner.incarnation = "x";
  question_.joiners.push_back(joiner);
  const View next = decide().view;
  EXPECT_THAT(names(next), ElementsAre("a", "b"));
  EXPECT_THAT(next.joined, IsEmpty());
}

TEST_F(DecideViewTest, MembersGoneByChoiceHaveLeft) {
  report(0, 5);
  question_.gone_by_choice = {"c"};
  const View next = decide().view;
  EXPECT_THAT(next.left, ElementsAre("c"));
  EXPECT_THAT(next.lost, ElementsAre("b", "d"));
}

TEST_F(DecideViewTest, CommitsAreTheGreatestReported) {
  report(0, 5);
  report(1, 5);
  question_.reporters[0].report.commits = 3;
  question_.reporters[1].report.commits = 4;
  EXPECT_EQ(decide().view.commits, 4U);
}

}  // namespace
}  // namespace elastic::rendezvous
