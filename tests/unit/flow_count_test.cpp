#include "collectives/transport/flow_count.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace elastic::transport {
namespace {

constexpr std::size_t kPlenty = 1 << 20;

TEST(FlowsPerLink, AreSixteenForAllLinksBetweenTwoHosts) {
  EXPECT_EQ(flows_per_link({.ranks_here = 1, .ranks_there = 1}, kPlenty), 16U);
  EXPECT_EQ(flows_per_link({.ranks_here = 2, .ranks_there = 1}, kPlenty), 8U);
  EXPECT_EQ(flows_per_link({.ranks_here = 1, .ranks_there = 3}, kPlenty), 6U);
  EXPECT_EQ(flows_per_link({.ranks_here = 8, .ranks_there = 8}, kPlenty), 2U);
  EXPECT_EQ(flows_per_link({.ranks_here = 64, .ranks_there = 8}, kPlenty), 1U);
}

TEST(FlowsPerLink, AreTheSameSeenFromBothEnds) {
  for (std::size_t here = 1; here < 12; ++here) {
    for (std::size_t there = 1; there < 12; ++there) {
      EXPECT_EQ(flows_per_link({.ranks_here = here, .ranks_there = there}, kPlenty),
                flows_per_link({.ranks_here = there, .ranks_there = here}, kPlenty));
    }
  }
}

TEST(FlowsPerLink, LeaveHalfOfTheDescriptors) {
  EXPECT_EQ(flows_per_link({.links = 32}, 1024), 16U);
  EXPECT_EQ(flows_per_link({.links = 128}, 1024), 4U);
  EXPECT_EQ(flows_per_link({.links = 4000}, 1024), 1U);
  EXPECT_EQ(flows_per_link({.links = 4000}, std::numeric_limits<std::size_t>::max()), 16U);
  EXPECT_GT(descriptor_limit(), 16U);
}

TEST(FlowsPerLink, AreAtLeastOneWhateverIsCounted) {
  EXPECT_EQ(flows_per_link({.ranks_here = 0, .ranks_there = 0, .links = 0}, 0), 1U);
}

TEST(ThreadsPerLane, AreOneForEveryFourCoresOfARank) {
  EXPECT_EQ(threads_per_lane({.of_host = 2, .usable = 2}, 1), 1U);
  EXPECT_EQ(threads_per_lane({.of_host = 8, .usable = 8}, 1), 2U);
  EXPECT_EQ(threads_per_lane({.of_host = 72, .usable = 72}, 1), 4U);
  EXPECT_EQ(threads_per_lane({.of_host = 96, .usable = 96}, 8), 3U);
  EXPECT_EQ(threads_per_lane({.of_host = 96, .usable = 96}, 96), 1U);
}

/// mpirun and Slurm may give each rank cores of its own.
TEST(ThreadsPerLane, AreBoundedByTheCoresThatTheProcessMayUse) {
  EXPECT_EQ(threads_per_lane({.of_host = 96, .usable = 1}, 1), 1U);
  EXPECT_EQ(threads_per_lane({.of_host = 96, .usable = 12}, 8), 3U);
  EXPECT_GE(count_cores().of_host, count_cores().usable);
  EXPECT_GE(count_cores().usable, 1U);
}

}  // namespace
}  // namespace elastic::transport
