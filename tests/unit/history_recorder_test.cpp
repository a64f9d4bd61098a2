#include "rendezvous/server/history_recorder.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::rendezvous {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

View view_of(std::uint64_t generation, const std::vector<std::string>& members) {
  View view;
  view.generation = generation;
  for (const std::string& name : members) {
    Member member;
    member.incarnation = name;
    view.members.push_back(member);
  }
  return view;
}

WorkerFigures changes(std::vector<WorkerFigures::Change> its) {
  WorkerFigures figures;
  figures.changes = std::move(its);
  return figures;
}

class HistoryRecorderTest : public ::testing::Test {
 protected:
  HistoryRecorderTest() {
    EXPECT_THAT(recorder_.note_view(view_of(1, {"a", "b", "c"})), IsEmpty());
  }

  /// c is lost.
  void lose() {
    View next = view_of(2, {"a", "b"});
    next.lost = {"c"};
    EXPECT_THAT(recorder_.note_view(next), IsEmpty());
  }
  /// d comes in its place.
  void replace() {
    View next = view_of(3, {"a", "b", "d"});
    next.joined = {"d"};
    EXPECT_THAT(recorder_.note_view(next), IsEmpty());
  }
  const JobHistory::Views& views(const std::string& cause) {
    for (const auto& views : recorder_.history().views) {
      if (views.cause == cause) return views;
    }
    ADD_FAILURE() << "no views by " << cause;
    return recorder_.history().views.front();
  }

  HistoryRecorder recorder_;
};

TEST_F(HistoryRecorderTest, ARecoveryTakesAsLongAsThatOfTheSlowestMember) {
  lose();
  EXPECT_THAT(recorder_.note_figures("a", changes({{2, 0.03}})), IsEmpty());
  const auto complete = recorder_.note_figures("b", changes({{2, 0.2}}));
  ASSERT_THAT(complete, SizeIs(1));
  EXPECT_EQ(complete[0].generation, 2U);
  EXPECT_EQ(complete[0].cause, "loss");
  EXPECT_EQ(complete[0].seconds, 0.2);
  EXPECT_EQ(views("loss").count, 1U);
  EXPECT_EQ(views("loss").recovery_s, 0.2);
  EXPECT_EQ(views("loss").recoveries[4], 1U) << "up to 0.25 s";
  EXPECT_THAT(recorder_.note_figures("b", changes({{2, 0.2}})), IsEmpty()) << "counted once";
}

TEST_F(HistoryRecorderTest, ALossAndTheJoinThatFollowsAtOnceAreTwoRecoveries) {
  lose();
  replace();
  EXPECT_THAT(recorder_.note_figures("a", changes({{2, 0.1}, {3, 0.01}})), IsEmpty());
  EXPECT_THAT(recorder_.note_figures("b", changes({{2, 0.2}, {3, 0.02}})), SizeIs(2));
  EXPECT_EQ(views("loss").recovery_s, 0.2);
  EXPECT_EQ(views("join").recovery_s, 0.02) << "the joiner itself is not waited for";
}

TEST_F(HistoryRecorderTest, AMemberThatWasNotStoppedByAChangeIsNotWaitedFor) {
  lose();
  replace();
  EXPECT_THAT(recorder_.note_figures("a", changes({{2, 0.1}, {3, 0.01}})), IsEmpty());
  EXPECT_THAT(recorder_.note_figures("b", changes({{3, 0.02}})), SizeIs(2));
  EXPECT_EQ(views("loss").recovery_s, 0.1);
}

TEST_F(HistoryRecorderTest, AMemberThatIsGoneIsNotWaitedFor) {
  lose();
  EXPECT_THAT(recorder_.note_figures("a", changes({{2, 0.1}})), IsEmpty());
  View next = view_of(3, {"a"});
  next.left = {"b"};
  EXPECT_THAT(recorder_.note_view(next), SizeIs(1));
  EXPECT_EQ(views("loss").recovery_s, 0.1);
  EXPECT_EQ(views("leave").count, 1U);
}

TEST_F(HistoryRecorderTest, AViewWithTheSameMembersIsARepair) {
  EXPECT_EQ(cause_of(view_of(2, {"a"})), "repair");
  EXPECT_EQ(views("start").count, 1U);
}

TEST_F(HistoryRecorderTest, KeepsTheLatestEventsAndRates) {
  for (int i = 0; i < 1000; ++i) {
    recorder_.note_event("view", std::to_string(i), i);
    recorder_.note_rate(i, i);
  }
  EXPECT_THAT(recorder_.history().events, SizeIs(100));
  EXPECT_EQ(recorder_.history().events.back().text, "999");
  EXPECT_THAT(recorder_.history().rates, SizeIs(240));
  EXPECT_FALSE(recorder_.wants_rate(999 + 4999));
  EXPECT_TRUE(recorder_.wants_rate(999 + 5000));
  recorder_.note_event("view", std::string(1000, 'x'), 0);
  EXPECT_THAT(recorder_.history().events.back().text, SizeIs(303));
}

}  // namespace
}  // namespace elastic::rendezvous
