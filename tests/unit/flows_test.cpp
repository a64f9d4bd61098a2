#include "collectives/plan/flows.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::plan {
namespace {

constexpr LinkCost kFast{50'000, 800'000};  // 10 Gbit/s
constexpr LinkCost kGigabitEach{60'000, 8'738'133};
constexpr std::size_t kStripe = 256 * 1024;

/// Goes on as the ranks do, with times that `takes` gives.
template <typename Takes>
std::vector<FlowTime> try_all(std::uint64_t opened, const Takes& takes) {
  std::vector<FlowTime> times;
  while (const std::uint64_t flows = next_flows(times, opened)) {
    times.push_back({flows, takes(flows)});
  }
  return times;
}

TEST(Flows, OneIsEnoughWhereMoreAreOfNoUse) {
  const auto times = try_all(8, [](std::uint64_t flows) { return 4'000'000 + flows * 1000; });
  EXPECT_EQ(times.size(), 2U) << "four need not be tried";
  EXPECT_EQ(choose_flows(times).flows, 1U);
}

TEST(Flows, AsManyAsTheLineTakesWhereEachIsCapped) {
  // Each has a fifth of the line.
  const auto capped = [](std::uint64_t flows) {
    return std::max<std::uint64_t>(8'000'000 / flows, 1'600'000);
  };
  EXPECT_EQ(choose_flows(try_all(8, capped)).flows, 8U);
  EXPECT_EQ(choose_flows(try_all(4, capped)).flows, 4U);
  EXPECT_EQ(choose_flows(try_all(2, capped)).flows, 2U);
}

TEST(Flows, AllAreTriedWhereTheyAreNoPowerOfTwo) {
  std::vector<std::uint64_t> tried;
  for (const FlowTime& one : try_all(3, [](std::uint64_t flows) { return 900'000 / flows; })) {
    tried.push_back(one.flows);
  }
  EXPECT_EQ(tried, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(Flows, TheFewestWithinATenthOfTheBestAreTaken) {
  EXPECT_EQ(choose_flows({{1, 1099}, {2, 1000}}).flows, 1U);
  EXPECT_EQ(choose_flows({{1, 1101}, {2, 1000}}).flows, 2U);
  EXPECT_EQ(choose_flows({{1, 2000}, {2, 1050}, {4, 1000}, {8, 990}}).flows, 2U);
  EXPECT_EQ(choose_flows({{1, 2000}, {2, 1050}, {4, 900}, {8, 990}}).flows, 4U);
}

TEST(Flows, AreOnlyTriedWhereThatIsQuickAndThereIsAChoice) {
  EXPECT_TRUE(may_try_flows(kFast, 2));
  EXPECT_FALSE(may_try_flows(kFast, 1));
  EXPECT_FALSE(may_try_flows(kFast, 0));
  EXPECT_FALSE(may_try_flows(kGigabitEach, 8));
  EXPECT_FALSE(may_try_flows({}, 8)) << "nothing was measured";
  EXPECT_TRUE(may_try_line(kGigabitEach, 8)) << "it may have begun slowly";
  EXPECT_FALSE(may_try_line(kGigabitEach, 1));
  EXPECT_FALSE(may_try_line({0, 80'000'000}, 8));  // 100 Mbit/s
  EXPECT_FALSE(may_try_line({}, 8));
}

TEST(Flows, ABulkMessageHasAStripeForEachAndTakesMilliseconds) {
  EXPECT_EQ(bulk_bytes(kFast, 2, kStripe), 5U << 20);  // 4 ms at 10 Gbit/s
  EXPECT_EQ(bulk_bytes(kFast, 8, kStripe), 6U << 20);
  EXPECT_EQ(bulk_bytes({0, 1}, 8, kStripe), 8U << 20);
  EXPECT_EQ(bulk_bytes({0, std::numeric_limits<std::uint64_t>::max()}, 8, kStripe), 2U << 20);
  EXPECT_EQ(bulk_bytes({}, 0, kStripe), 8U << 20);
}

TEST(Flows, CostsAreThoseOfTheFlowsInUse) {
  EXPECT_EQ(with_flows(kFast, {1, 999}, 4 << 20).ns_per_mib, kFast.ns_per_mib);
  const LinkCost four = with_flows(kFast, {4, 850'000}, 4 << 20);
  EXPECT_EQ(four.latency_ns, kFast.latency_ns);
  EXPECT_EQ(four.ns_per_mib, 200'000U);
}

TEST(Flows, ATrialMessageTellsTheSpeedOfALine) {
  EXPECT_TRUE(may_try_flows(bulk_cost(50'000, 1'700'000, kTrialBytes), 8));   // 5 Gbit/s
  EXPECT_FALSE(may_try_flows(bulk_cost(50'000, 8'700'000, kTrialBytes), 8));  // 1 Gbit/s
  EXPECT_EQ(bulk_cost(50'000, 10'000, kTrialBytes).ns_per_mib, 1U);
}

// Measurements of other ranks are untrusted and may have any value.
TEST(Flows, NonsenseEndsAndStaysWithinBounds) {
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t time : {std::uint64_t{0}, std::uint64_t{1}, kHuge}) {
    const auto times = try_all(kHuge, [&](std::uint64_t) { return time; });
    const FlowTime chosen = choose_flows(times);
    EXPECT_EQ(chosen.flows, 1U);
    EXPECT_GT(with_flows({kHuge, kHuge}, {2, time}, 1 << 20).ns_per_mib, 0U);
  }
  std::uint64_t fewer = kHuge;
  const auto times = try_all(kHuge, [&](std::uint64_t) { return fewer /= 1000; });
  EXPECT_LE(times.back().flows, kMostFlows);
  EXPECT_LE(bulk_bytes({0, 1}, kHuge, kStripe), 16U << 20);
}

}  // namespace
}  // namespace elastic::plan
