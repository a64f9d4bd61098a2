#include "training/work_assignment.hpp"

#include <gtest/gtest.h>

namespace elastic::training {
namespace {

using Workers = std::vector<WorkerId>;
using Indices = std::vector<std::size_t>;

TEST(WorkAssignment, IsInBlocksAsEqualAsPossible) {
  const WorkAssignment assignment(8, Workers{10, 20, 30});
  EXPECT_EQ(assignment.of(10), (Indices{0, 1, 2}));
  EXPECT_EQ(assignment.of(20), (Indices{3, 4, 5}));
  EXPECT_EQ(assignment.of(30), (Indices{6, 7}));
}

TEST(WorkAssignment, LeavesMembersIdleWhereTheyAreMore) {
  const WorkAssignment assignment(2, Workers{0, 1, 2});
  EXPECT_EQ(assignment.of(0), (Indices{0}));
  EXPECT_EQ(assignment.of(1), (Indices{1}));
  EXPECT_TRUE(assignment.of(2).empty());
}

TEST(WorkAssignment, GivesWhatIsMissingToThoseThatAreLeft) {
  WorkAssignment assignment(8, Workers{1, 2, 3, 4});
  EXPECT_EQ(assignment.complete(Workers{1, 3, 4}), 2U);  // 2 had the virtual workers 2 and 3
  EXPECT_EQ(assignment.of(1), (Indices{2}));
  EXPECT_EQ(assignment.of(3), (Indices{3}));
  EXPECT_TRUE(assignment.of(4).empty());
  EXPECT_EQ(assignment.complete(Workers{3, 4}), 1U);
  EXPECT_EQ(assignment.of(3), (Indices{2}));
  EXPECT_EQ(assignment.complete(Workers{3, 4}), 0U);
  EXPECT_TRUE(assignment.of(3).empty());
}

TEST(WorkAssignment, ReopenedLeavesEverythingWithWhoHadItLast) {
  WorkAssignment assignment(4, Workers{1, 2});
  EXPECT_EQ(assignment.complete(Workers{2}), 2U);
  EXPECT_EQ(assignment.complete(Workers{2}), 0U);
  assignment.reopen();
  EXPECT_EQ(assignment.of(2), (Indices{0, 1, 2, 3}));
}

}  // namespace
}  // namespace elastic::training
