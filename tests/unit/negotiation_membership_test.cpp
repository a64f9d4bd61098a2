#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/negotiation_simulator.hpp"

namespace elastic::coordinator {
namespace {

TEST(NegotiationMembership, KeepsThePlanThroughChangesOfMembershipInTheMiddleOfAStep) {
  const auto program = varied_program(30);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    NegotiationSimulator simulator(4, 80, seed, links_all(seed));
    simulator.step(program);
    const auto buckets = as_set(simulator.take_history());
    std::size_t informed = simulator.size();  // these, the oldest, have been in all of a step
    for (int step = 0; step < 6; ++step) {
      simulator.begin(program);
      const std::size_t before = simulator.size();
      std::size_t gone = 0;
      for (auto change = random() % 3; change > 0; --change) {
        simulator.advance(random() % 150);
        std::vector<std::size_t> survivors(simulator.size());
        std::iota(survivors.begin(), survivors.end(), std::size_t{0});
        // The leader is as likely to go as the others, but a successor that knows the plan stays.
        const auto victim = random() % survivors.size();
        if (victim >= informed || informed > 1) {
          survivors.erase(survivors.begin() + static_cast<std::ptrdiff_t>(victim));
          if (victim < informed) --informed;
          if (victim < before - gone) ++gone;
        }
        simulator.change_view(survivors, survivors.size() < 5 ? random() % 3 : 0);
      }
      ASSERT_TRUE(simulator.finish());
      ASSERT_EQ(as_set(simulator.take_history()), buckets) << "step " << step;
      informed = before - gone;
    }
  }
}

TEST(NegotiationMembership, CompletesEverythingOnceIfTheFirstStepIsInterrupted) {
  const auto program = varied_program(30);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    NegotiationSimulator simulator(3, 80, seed, links_all(seed));
    simulator.begin(program);
    simulator.advance(seed * 3);
    simulator.change_view({1, 2}, 1);  // the only one that had made a plan is gone
    ASSERT_TRUE(simulator.finish());
    std::multiset<std::string> names;
    for (const std::string& bucket : simulator.take_history()) {
      for (std::size_t at = 0; at <= bucket.size();) {
        const std::size_t end = std::min(bucket.find('+', at), bucket.size());
        names.insert(bucket.substr(at, end - at));
        at = end + 1;
      }
    }
    ASSERT_EQ(names.size(), program.size());
    for (const TensorRequest& request : program) EXPECT_EQ(names.count(request.name), 1u);
  }
}

// Beside the others, whose buckets are what they are without them.
TEST(NegotiationMembership, CompletesCallsOfGroupsOnceThroughDeathsAndJoins) {
  const auto tensors = varied_program(12);
  const auto program = with_group_calls(tensors, 5);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    NegotiationSimulator alone(9, 60, seed, links_all(seed));
    alone.step(tensors);
    auto all = as_set(alone.take_history());
    for (const TensorRequest& request : program) {
      if (request.name.find('/') != std::string::npos) all.insert(request.name);
    }
    NegotiationSimulator simulator(9, 60, seed, links_all(seed));
    simulator.step(program);
    ASSERT_EQ(as_set(simulator.take_history()), all);
    for (int step = 0; step < 3; ++step) {
      simulator.begin(program);
      simulator.advance(random() % 300);
      std::vector<std::size_t> survivors;
      for (std::size_t rank = 0; rank < simulator.size(); ++rank) {
        // One of each group stays: otherwise it makes no calls.
        if (rank < 2 || random() % 5 > 0) survivors.push_back(rank);
      }
      simulator.change_view(survivors, random() % 3);
      ASSERT_TRUE(simulator.finish());
      ASSERT_EQ(as_set(simulator.take_history()), all) << "step " << step;
    }
  }
}

TEST(NegotiationMembership, AppliesAFlushThatTheNewLeaderMadeAsAFollower) {
  Negotiator negotiator(100);
  negotiator.restart(1, 2);
  ASSERT_TRUE(negotiator.submit(floats("a", 1)).ok());
  negotiator.flush();  // the program is blocked from here on
  EXPECT_TRUE(negotiator.take_orders().empty());
  negotiator.restart(0, 1);
  EXPECT_EQ(negotiator.take_orders().size(), 1u);
}

}  // namespace
}  // namespace elastic::coordinator
