#include "collectives/plan/tuning.hpp"

#include <gtest/gtest.h>

#include "collectives/plan/allreduce.hpp"
#include "elastic/options.hpp"

namespace elastic::plan {
namespace {

constexpr std::size_t kMost = 256 * 1024;
constexpr std::size_t kLarge = 1 << 20;
constexpr LinkCost kSharedMemory{600, 200'000};  // 5 GB/s
constexpr LinkCost kGigabit{60'000, 8'738'133};
constexpr LinkCost kHundredGigabit{31'000, 85'000};
const Thresholds kGiven{.capacity = 1 << 20};

Hosts blocks(int hosts, int ranks_each) {
  std::vector<int> host_of_rank;
  for (int rank = 0; rank < hosts * ranks_each; ++rank) host_of_rank.push_back(rank / ranks_each);
  return Hosts(host_of_rank);
}

TEST(Tuning, LatencyFavoursFewHopsAndBandwidthFewBytes) {
  const LinkCosts costs{{}, kGigabit};
  const Hosts hosts = blocks(8, 1);
  const auto time = [&](AllreduceAlgorithm algorithm, std::size_t bytes) {
    return estimate(algorithm, hosts, costs, bytes);
  };
  EXPECT_LT(time(AllreduceAlgorithm::kDoubling, 64), time(AllreduceAlgorithm::kRing, 64));
  EXPECT_GT(time(AllreduceAlgorithm::kDoubling, 1 << 24), time(AllreduceAlgorithm::kRing, 1 << 24));
  // 2 x 7/8 of 16 MiB at 120 bytes a microsecond: blocks of several segments hide the latency.
  EXPECT_EQ(time(AllreduceAlgorithm::kRing, 1 << 24) / 1'000'000, 244);
  // 2 x 7/8 of 64 KiB, and 14 hops of 60 us.
  EXPECT_NEAR(static_cast<double>(time(AllreduceAlgorithm::kRing, 1 << 16)) / 1e6,
              0.955 + 14 * 0.06, 0.01);
}

TEST(Tuning, ManyHostsPreferFewHopsWhileTheirBlocksAreShort) {
  const Thresholds many = tuned(blocks(256, 1), {{}, kHundredGigabit}, kGiven);
  EXPECT_EQ(choose_large_allreduce(blocks(256, 1), 64 << 20, many), AllreduceAlgorithm::kCirculant);
  EXPECT_EQ(choose_large_allreduce(blocks(256, 1), std::size_t{1} << 30, many),
            AllreduceAlgorithm::kRing);
  const Thresholds ranks = tuned(blocks(256, 8), {kSharedMemory, kHundredGigabit}, kGiven);
  EXPECT_EQ(choose_large_allreduce(blocks(256, 8), 64 << 20, ranks),
            AllreduceAlgorithm::kCirculant);
}

TEST(Tuning, FewHostsUseARingWhereItIsNotMuchSlower) {
  constexpr std::size_t kMiddle = 256 * 1024;
  const auto choice = [](int hosts, const LinkCost& between, std::size_t bytes) {
    const Hosts placed = blocks(hosts, 1);
    return choose_large_allreduce(placed, bytes, tuned(placed, {{}, between}, kGiven));
  };
  constexpr LinkCost kNear{5'000, 8'738'133};
  EXPECT_EQ(choice(16, kHundredGigabit, kMiddle), AllreduceAlgorithm::kCirculant);
  EXPECT_EQ(choice(16, kHundredGigabit, 64 << 20), AllreduceAlgorithm::kRing);
  EXPECT_EQ(choice(16, kNear, kMiddle), AllreduceAlgorithm::kRing);
  EXPECT_EQ(choice(3, kHundredGigabit, kMiddle), AllreduceAlgorithm::kRing) << "as many hops";
}

TEST(Tuning, ShortBlocksTravelTogether) {
  const auto hops = [](int hosts, std::size_t bytes) {
    const std::uint64_t time =
        estimate(AllreduceAlgorithm::kCirculant, blocks(hosts, 1), {{}, kHundredGigabit}, bytes);
    return time / kHundredGigabit.latency_ns;
  };
  EXPECT_EQ(hops(256, 32 * 1024), 2U * 8);
  EXPECT_GT(hops(256, 256 * kShortBlock), 2U * 8 + 2 * 247 / 4);
}

TEST(Tuning, TheHierarchySendsOnceForEachHost) {
  const LinkCosts costs{kSharedMemory, kGigabit};
  const Hosts hosts = blocks(2, 4);
  constexpr std::size_t kBytes = 1 << 24;
  EXPECT_LT(estimate(AllreduceAlgorithm::kHierarchical, hosts, costs, kBytes),
            estimate(AllreduceAlgorithm::kRing, hosts, costs, kBytes) / 3);
}

TEST(Tuning, SlowLinksWithLatencyUseDoublingLonger) {
  const Hosts hosts = blocks(8, 1);
  const Thresholds fast = tuned(hosts, {{}, kSharedMemory}, kGiven);
  const Thresholds far = tuned(hosts, {{}, {500'000, 200'000}}, kGiven);
  EXPECT_GT(far.doubling_bytes, fast.doubling_bytes);
  EXPECT_GE(far.doubling_bytes, far.one_shot_bytes);
}

TEST(Tuning, LeavesTwoRanksAlone) {
  const Thresholds two = tuned(Hosts::one(2), {kSharedMemory, {}}, kGiven);
  EXPECT_EQ(two.one_shot_bytes, kGiven.one_shot_bytes);
  EXPECT_EQ(two.doubling_bytes, kGiven.doubling_bytes);
}

// The inputs of failed measurements: nothing was measured, or a clock did not advance.
TEST(Tuning, StaysWithinBoundsWhateverWasMeasured) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  for (const LinkCost& cost :
       {LinkCost{0, 0}, {kHuge, 0}, {0, kHuge}, {kHuge, kHuge}, {1, 1}, {1000, 1}}) {
    for (const Hosts& hosts : {Hosts::one(2), Hosts::one(7), blocks(3, 2), blocks(5, 1)}) {
      const Thresholds chosen = tuned(hosts, {cost, cost}, kGiven);
      EXPECT_GE(chosen.one_shot_bytes, 1024U);
      EXPECT_LE(chosen.one_shot_bytes, chosen.doubling_bytes);
      EXPECT_LE(chosen.doubling_bytes, 128U * 1024);
      const std::size_t segment = tuned_segment(hosts, {cost, cost}, kMost);
      EXPECT_GE(segment, 128U * 1024);
      EXPECT_LE(segment, kMost);
    }
  }
}

TEST(Tuning, SegmentsAreNeverLongerThanAskedFor) {
  EXPECT_EQ(tuned_segment(Hosts::one(3), {kSharedMemory, {}}, 4096), 4096U);
}

TEST(Choose, WhatIsAskedForWhereItCanBeDone) {
  Thresholds asked = kGiven;
  asked.algorithm = AllreduceAlgorithm::kRing;
  EXPECT_EQ(choose_allreduce(Hosts::one(2), 8, asked), AllreduceAlgorithm::kRing);
  EXPECT_EQ(choose_large_allreduce(Hosts::one(2), kLarge, asked), AllreduceAlgorithm::kRing);
  asked.algorithm = AllreduceAlgorithm::kTwoRankExchange;
  EXPECT_EQ(choose_large_allreduce(Hosts::one(3), kLarge, asked), AllreduceAlgorithm::kTwoShot);
  asked.algorithm = AllreduceAlgorithm::kHierarchical;
  EXPECT_EQ(choose_large_allreduce(blocks(3, 1), kLarge, asked), AllreduceAlgorithm::kRing);
  EXPECT_EQ(choose_allreduce(blocks(2, 2), 8, asked), AllreduceAlgorithm::kHierarchical);
  asked.algorithm = AllreduceAlgorithm::kOneShot;  // does not read kInput
  EXPECT_EQ(choose_large_allreduce(Hosts::one(2), kLarge, asked),
            AllreduceAlgorithm::kTwoRankExchange);
  EXPECT_EQ(choose_allreduce(Hosts::one(2), 1 << 20, asked), AllreduceAlgorithm::kOneShot);
}

TEST(Choose, NamesAreReadAsTheyAreWritten) {
  for (const AllreduceAlgorithm algorithm :
       {AllreduceAlgorithm::kOneShot, AllreduceAlgorithm::kDoubling,
        AllreduceAlgorithm::kTwoRankExchange, AllreduceAlgorithm::kTwoShot,
        AllreduceAlgorithm::kHierarchical, AllreduceAlgorithm::kRing,
        AllreduceAlgorithm::kCirculant}) {
    EXPECT_EQ(algorithm_named(name(algorithm)), algorithm);
  }
  EXPECT_EQ(algorithm_named("auto"), std::nullopt);
}

TEST(Choose, EachAlgorithmThatUsersCanAskForExists) {
  for (const auto& choice : kAlgorithms) {
    EXPECT_EQ(algorithm_named(choice.name).has_value(), choice.value != Algorithm::kAuto)
        << choice.name;
  }
}

}  // namespace
}  // namespace elastic::plan
