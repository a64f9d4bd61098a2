#include "collectives/transport/yield_budget.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace elastic::transport {
namespace {

TEST(YieldBudget, StaysWhileYieldsAreShort) {
  YieldBudget budget;
  for (int wait = 0; wait < 1000; ++wait) {
    budget.learn(std::chrono::microseconds(20));
    budget.next_wait();
    ASSERT_EQ(budget.rounds(), YieldBudget::kMost) << wait;
  }
}

TEST(YieldBudget, SleepsAtOnceAfterALongYieldAndInTheWaitsAfterIt) {
  YieldBudget budget;
  budget.learn(YieldBudget::kLong);
  for (int wait = 0; wait < YieldBudget::kProbe; ++wait) {
    ASSERT_EQ(budget.rounds(), 0) << wait;
    budget.next_wait();
  }
  EXPECT_EQ(budget.rounds(), YieldBudget::kMost);
}

}  // namespace
}  // namespace elastic::transport
