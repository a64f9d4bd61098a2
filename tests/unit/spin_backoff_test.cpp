#include "collectives/transport/spin_backoff.hpp"

#include <chrono>
#include <initializer_list>

#include <gtest/gtest.h>

namespace elastic::transport {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kAlone{600};
constexpr microseconds kShared{3};

void wait(SpinBackoff& patience, std::initializer_list<Duration> yields) {
  for (const Duration yield : yields) patience.yielded(yield);
  patience.waited();
}

TEST(SpinBackoff, YieldsSoonWhereAPeerWantsTheCore) {
  SpinBackoff patience;
  for (int i = 0; i < 10; ++i) wait(patience, {kShared, kShared});
  EXPECT_EQ(patience.spins(), SpinBackoff::kLeastSpins);
  EXPECT_EQ(patience.yields(), SpinBackoff::kMostYields);
}

TEST(SpinBackoff, SpinsLongWhereNobodyElseWantsTheCore) {
  SpinBackoff patience;
  for (int i = 0; i < 10; ++i) wait(patience, {kShared});
  for (int i = 0; i < 10; ++i) wait(patience, {kAlone, kAlone});
  EXPECT_EQ(patience.spins(), SpinBackoff::most_spins);
}

TEST(SpinBackoff, SpinsLongWhereThatMostlyEndsTheWait) {
  SpinBackoff patience;
  for (int i = 0; i < 10; ++i) wait(patience, {kShared});
  for (int i = 0; i < 100; ++i) {
    if (i % 4 == 0) wait(patience, {kShared});
    wait(patience, {});
  }
  EXPECT_EQ(patience.spins(), SpinBackoff::most_spins);
}

TEST(SpinBackoff, SpinsForOnceAfterManyYieldsToAPeerAndLessOftenEachTime) {
  SpinBackoff patience;
  for (int apart = SpinBackoff::kFirstMigrationSpin, times = 0; times < 3; ++times, apart *= 2) {
    for (int i = 0; i < apart; ++i) {
      ASSERT_FALSE(patience.migration_spin()) << i;
      wait(patience, {kShared});
    }
    ASSERT_TRUE(patience.migration_spin());
    wait(patience, {});
  }
}

TEST(SpinBackoff, TellsAPeerByWhatAYieldTakesAtLeast) {
  SpinBackoff patience;
  wait(patience, {nanoseconds(200), nanoseconds(900)});
  EXPECT_LT(patience.spins(), SpinBackoff::most_spins);
}

TEST(SpinBackoff, SleepsAfterALongYieldAndInTheWaitsAfterIt) {
  SpinBackoff patience;
  patience.yielded(SpinBackoff::kLong);
  for (int i = 0; i < SpinBackoff::kWithout; ++i) {
    ASSERT_EQ(patience.yields(), 0) << i;
    wait(patience, {});
  }
  EXPECT_EQ(patience.yields(), SpinBackoff::kMostYields);
  EXPECT_EQ(patience.spins(), SpinBackoff::most_spins);
}

}  // namespace
}  // namespace elastic::transport
