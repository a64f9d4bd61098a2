#include <cstdint>

#include <gtest/gtest.h>

#include "tests/simulation/world.hpp"

namespace elastic::simulation {
namespace {

constexpr std::uint64_t kSeedsPerShard = 500;

/// Random jobs with random deaths, pauses, joins, leaves, removals, suspicions, lost reports and
/// delays. A run is a function of its seed: to look into one, run it alone with its log.
class MembershipProperty : public testing::TestWithParam<std::uint64_t> {};

TEST_P(MembershipProperty, HoldsInRandomRuns) {
  for (std::uint64_t i = 0; i < kSeedsPerShard; ++i) {
    const std::uint64_t seed = GetParam() * kSeedsPerShard + i;
    World world{Scenario(seed)};
    const std::string wrong = world.run();
    ASSERT_EQ(wrong, "") << "seed " << seed << "\n" << world.trace();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, MembershipProperty, testing::Range<std::uint64_t>(0, 8));

}  // namespace
}  // namespace elastic::simulation
