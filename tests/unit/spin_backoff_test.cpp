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

void wait(SpinBackoff& backoff, std::initializer_list<Duration> yields) {
  for (const Duration yield : yields) backoff.yielded(yield);
  backoff.waited();
}

TEST(SpinBackoff, YieldsSoonWhereAPeerWantsTheCore) {
  SpinBackoff backoff;
  for (int i = 0; i < 10; ++i) wait(backoff, {kShared, kShared});
  EXPECT_EQ(backoff.spins(), SpinBackoff::kLeastSpins);
  EXPECT_EQ(backoff.yields(), SpinBackoff::kMostYields);
}

TEST(SpinBackoff, SpinsLongWhereNoOtherThreadWantsTheCore) {
  SpinBackoff backoff;
  for (int i = 0; i < 10; ++i) wait(backoff, {kShared});
  for (int i = 0; i < 10; ++i) wait(backoff, {kAlone, kAlone});
  EXPECT_EQ(backoff.spins(), SpinBackoff::most_spins);
}

TEST(SpinBackoff, SpinsLongWhereThatMostlyEndsTheWait) {
  SpinBackoff backoff;
  for (int i = 0; i < 10; ++i) wait(backoff, {kShared});
  for (int i = 0; i < 100; ++i) {
    if (i % 4 == 0) wait(backoff, {kShared});
    wait(backoff, {});
  }
  EXPECT_EQ(backoff.spins(), SpinBackoff::most_spins);
}

TEST(SpinBackoff, SpinsForOnceAfterManyYieldsToAPeerAndLessOftenEachTime) {
  SpinBackoff backoff;
  for (int interval = SpinBackoff::kFirstMigrationSpin, times = 0; times < 3;
       ++times, interval *= 2) {
    for (int i = 0; i < interval; ++i) {
      ASSERT_FALSE(backoff.migration_spin()) << i;
      wait(backoff, {kShared});
    }
    ASSERT_TRUE(backoff.migration_spin());
    wait(backoff, {});
  }
}

TEST(SpinBackoff, TellsAPeerByWhatAYieldTakesAtLeast) {
  SpinBackoff backoff;
  wait(backoff, {nanoseconds(200), nanoseconds(900)});
  EXPECT_LT(backoff.spins(), SpinBackoff::most_spins);
}

TEST(SpinBackoff, SleepsAfterALongYieldAndInTheWaitsAfterIt) {
  SpinBackoff backoff;
  backoff.yielded(SpinBackoff::kLong);
  for (int i = 0; i < SpinBackoff::kWaitsWithoutYields; ++i) {
    ASSERT_EQ(backoff.yields(), 0) << i;
    wait(backoff, {});
  }
  EXPECT_EQ(backoff.yields(), SpinBackoff::kMostYields);
  EXPECT_EQ(backoff.spins(), SpinBackoff::most_spins);
}

TEST(SpinBackoff, SpinsShortlyWhereWaitsEndInASleepWithoutYields) {
  SpinBackoff backoff;
  backoff.yielded(SpinBackoff::kLong);
  for (int i = 0; i < 10; ++i) backoff.waited(/*slept=*/true);
  EXPECT_EQ(backoff.spins(), SpinBackoff::kLeastSpins);
  for (int i = 0; i < 10; ++i) backoff.waited();
  EXPECT_EQ(backoff.spins(), SpinBackoff::most_spins);
}

TEST(SpinBackoff, SpinsLongBeforeASleepWhereNoOtherThreadWantsTheCore) {
  SpinBackoff backoff;
  for (int i = 0; i < 10; ++i) {
    backoff.yielded(kAlone);
    backoff.waited(/*slept=*/true);
  }
  EXPECT_EQ(backoff.spins(), SpinBackoff::most_spins);
}

}  // namespace
}  // namespace elastic::transport
