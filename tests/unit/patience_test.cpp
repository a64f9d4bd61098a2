#include "collectives/transport/patience.hpp"

#include <chrono>
#include <initializer_list>

#include <gtest/gtest.h>

namespace elastic::transport {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kAlone{600};
constexpr microseconds kShared{3};

void wait(Patience& patience, std::initializer_list<Duration> yields) {
  for (const Duration yield : yields) patience.yielded(yield);
  patience.waited();
}

TEST(Patience, YieldsSoonWhereAPeerWantsTheCore) {
  Patience patience;
  for (int i = 0; i < 10; ++i) wait(patience, {kShared, kShared});
  EXPECT_EQ(patience.spins(), Patience::kLeastSpins);
  EXPECT_EQ(patience.yields(), Patience::kMostYields);
}

TEST(Patience, SpinsLongWhereNobodyElseWantsTheCore) {
  Patience patience;
  for (int i = 0; i < 10; ++i) wait(patience, {kShared});
  for (int i = 0; i < 10; ++i) wait(patience, {kAlone, kAlone});
  EXPECT_EQ(patience.spins(), Patience::most_spins);
}

TEST(Patience, SpinsLongWhereThatMostlyEndsTheWait) {
  Patience patience;
  for (int i = 0; i < 10; ++i) wait(patience, {kShared});
  for (int i = 0; i < 100; ++i) {
    if (i % 4 == 0) wait(patience, {kShared});
    wait(patience, {});
  }
  EXPECT_EQ(patience.spins(), Patience::most_spins);
}

TEST(Patience, SpinsForOnceAfterManyYieldsToAPeerAndLessOftenEachTime) {
  Patience patience;
  for (int apart = Patience::kFirstApart, times = 0; times < 3; ++times, apart *= 2) {
    for (int i = 0; i < apart; ++i) {
      ASSERT_FALSE(patience.gets_apart()) << i;
      wait(patience, {kShared});
    }
    ASSERT_TRUE(patience.gets_apart());
    wait(patience, {});
  }
}

TEST(Patience, TellsAPeerByWhatAYieldTakesAtLeast) {
  Patience patience;
  wait(patience, {nanoseconds(200), nanoseconds(900)});
  EXPECT_LT(patience.spins(), Patience::most_spins);
}

TEST(Patience, SleepsAfterALongYieldAndInTheWaitsAfterIt) {
  Patience patience;
  patience.yielded(Patience::kLong);
  for (int i = 0; i < Patience::kWithout; ++i) {
    ASSERT_EQ(patience.yields(), 0) << i;
    wait(patience, {});
  }
  EXPECT_EQ(patience.yields(), Patience::kMostYields);
  EXPECT_EQ(patience.spins(), Patience::most_spins);
}

}  // namespace
}  // namespace elastic::transport
