#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "base/log.hpp"
#include "tests/simulation/campaign.hpp"
#include "tests/simulation/world.hpp"

namespace elastic::simulation {
namespace {

/// A quarter of a minute of one core for all shards; SIMULATION_SEEDS asks for more.
std::uint64_t seeds_per_shard() {
  const char* asked = std::getenv("SIMULATION_SEEDS");
  if (asked != nullptr) return std::strtoull(asked, nullptr, 10);
  return 125;
}

class SimulationTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { log::set_level(LogLevel::kOff); }
};

/// Jobs under random faults. A run is a function of its seed: to look into one, replay it with its
/// trace.
class RandomRuns : public SimulationTest, public testing::WithParamInterface<std::uint64_t> {};

TEST_P(RandomRuns, HoldWhatMustHold) {
  const std::uint64_t seeds = seeds_per_shard();
  const Findings findings = run({1 + GetParam() * seeds, seeds, 1, Mutation::kNone});
  for (const Findings::Failure& failure : findings.failures) {
    ADD_FAILURE() << failure.wrong << "replay: ./run simulate --seed " << failure.seed
                  << " --seeds 1 --trace";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRuns, testing::Range<std::uint64_t>(0, 8));

/// A product with such a mistake would be noticed, and it is the mistake that is noticed: the runs
/// of the same seeds without it are the first of RandomRuns.
class BrokenRuns : public SimulationTest, public testing::WithParamInterface<Mutation> {};

TEST_P(BrokenRuns, AreNoticed) {
  // Beginning with the first of a few that notice, which are far apart.
  const std::uint64_t first = GetParam() == Mutation::kEarlyRelease       ? 117
                              : GetParam() == Mutation::kEarlyError       ? 708
                              : GetParam() == Mutation::kForgottenTimeout ? 287
                              : GetParam() == Mutation::kUnreportedLink   ? 1275
                              : GetParam() == Mutation::kStaleLastRank    ? 2560
                              : GetParam() == Mutation::kPresentRoster    ? 160
                              : GetParam() == Mutation::kLateRoster       ? 7562
                                                                          : 1;
  // Stalled jobs take long to simulate.
  const std::uint64_t seeds = GetParam() == Mutation::kDropFence ? 10 : 120;
  EXPECT_FALSE(run({first, seeds, 1, GetParam()}).failures.empty());
}

INSTANTIATE_TEST_SUITE_P(Mutations, BrokenRuns,
                         testing::Values(Mutation::kDropFence, Mutation::kEarlyConclusion,
                                         Mutation::kForgottenFloor, Mutation::kEarlyRelease,
                                         Mutation::kUnfrozenBoundary, Mutation::kLostMeansDead,
                                         Mutation::kEarlyError, Mutation::kStayAfterException,
                                         Mutation::kForgottenTimeout, Mutation::kUndialedLink,
                                         Mutation::kUnreportedLink, Mutation::kMixedStep,
                                         Mutation::kPresentRoster, Mutation::kLateRoster,
                                         Mutation::kStaleLastRank),
                         [](const auto& mutation) {
                           std::string name(simulation::name(mutation.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// A thread that loops without waiting lets no virtual time pass. It is named, and the run ends.
TEST_F(SimulationTest, ABusyThreadIsNamed) {
  const Findings findings = run({1, 4, 1, Mutation::kBusyThread});
  ASSERT_FALSE(findings.failures.empty());
  for (const Findings::Failure& failure : findings.failures) {
    EXPECT_NE(failure.wrong.find("is in a busy loop"), std::string::npos) << failure.wrong;
    EXPECT_EQ(failure.wrong.find("do not end"), std::string::npos) << failure.wrong;
  }
}

/// A few of the first seeds have more workers than the others.
TEST_F(SimulationTest, SomeJobsAreLarge) {
  int large = 0;
  int very_large = 0;
  for (std::uint64_t seed = 1; seed <= 10000; ++seed) {
    const int workers = Scenario(seed).options.initial_np;
    EXPECT_LE(workers, static_cast<int>(Scenario::kLargest));
    large += workers >= 8 ? 1 : 0;
    very_large += workers > 64 ? 1 : 0;
    EXPECT_GE(Scenario(seed, Mutation::kNone, true).options.initial_np, 32);
  }
  EXPECT_GE(large, 100);
  EXPECT_GE(very_large, 1);
}

/// More workers than are all linked with each other from the start.
TEST_F(SimulationTest, LargeJobsHoldWhatMustHold) {
  const Findings findings = run({32, 4, 1, Mutation::kNone, true});
  for (const Findings::Failure& failure : findings.failures) {
    ADD_FAILURE() << failure.wrong << "replay: ./run simulate --seed " << failure.seed
                  << " --seeds 1 --trace --large";
  }
  EXPECT_GT(findings.tally.later_links, 0U);
  EXPECT_GT(findings.tally.faults[static_cast<std::size_t>(Fault::kRackLost)], 0U);
}

TEST_F(SimulationTest, ASeedReplaysExactly) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    World first(Scenario(seed), true);
    World second(Scenario(seed), true);
    EXPECT_EQ(first.run(), second.run());
    EXPECT_EQ(first.trace(), second.trace());
    EXPECT_FALSE(first.trace().empty());
  }
}

}  // namespace
}  // namespace elastic::simulation
