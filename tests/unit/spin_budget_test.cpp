#include "collectives/transport/spin_budget.hpp"

#include <gtest/gtest.h>

namespace elastic::transport {
namespace {

TEST(SpinBudget, GrowsWhileSpinningFindsWhatIsWaitedFor) {
  SpinBudget budget;
  for (int wait = 0; wait < 10; ++wait) budget.learn(1);
  EXPECT_EQ(budget.rounds(), SpinBudget::kMost);
}

TEST(SpinBudget, ShrinksWhereThePeerRunsOnlyWhenWeDoNot) {
  SpinBudget budget;
  for (int wait = 0; wait < 10; ++wait) budget.learn(budget.rounds() + 1);
  EXPECT_EQ(budget.rounds(), SpinBudget::kLeast);
}

TEST(SpinBudget, RecoversWhenTheMachineIsFreeAgain) {
  SpinBudget budget;
  for (int wait = 0; wait < 10; ++wait) budget.learn(budget.rounds() + 1);
  // What is waited for now comes after 50 rounds: only a probe can notice, and it has to last.
  for (int wait = 0; wait < SpinBudget::kProbe; ++wait) budget.learn(50);
  for (int wait = 0; wait < 3 * SpinBudget::kProbe; ++wait) {
    EXPECT_GE(budget.rounds(), 50) << wait;
    budget.learn(50);
  }
}

}  // namespace
}  // namespace elastic::transport
