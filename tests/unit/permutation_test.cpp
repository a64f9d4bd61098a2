#include "training/permutation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::training {
namespace {

using Order = std::vector<std::uint64_t>;

Order order_of(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch) {
  const Permutation permutation(size, seed, epoch);
  Order order;
  for (std::uint64_t at = 0; at < size; ++at) order.push_back(permutation(at));
  return order;
}

/// Pearson's statistic of how often each of equally likely things was seen, in standard deviations
/// over what is to be expected of it.
double excess(const std::vector<double>& seen) {
  const double expected =
      std::accumulate(seen.begin(), seen.end(), 0.0) / static_cast<double>(seen.size());
  double statistic = 0;
  for (const double count : seen) statistic += (count - expected) * (count - expected) / expected;
  const auto freedom = static_cast<double>(seen.size() - 1);
  return (statistic - freedom) / std::sqrt(2 * freedom);
}

constexpr double kSurprise = 5;  // one in a million, and the seeds are the same in every run

TEST(Permutation, IsTheSameOnEveryPlatform) {
  EXPECT_EQ(order_of(8, 1, 0), (Order{0, 7, 1, 6, 4, 2, 3, 5}));
  EXPECT_EQ(order_of(8, 1, 1), (Order{7, 0, 3, 6, 1, 4, 2, 5}));
  EXPECT_EQ(order_of(1, 1, 0), (Order{0}));
  EXPECT_EQ(Permutation(std::uint64_t{1} << 40, 1, 0)(12345), 915067714651U);
}

TEST(Permutation, TakesEverySampleOnceAndDependsOnSeedAndEpoch) {
  for (const std::uint64_t size :
       std::initializer_list<std::uint64_t>{1, 2, 3, 63, 64, 65, 1000, 4096, 4097}) {
    Order sorted = order_of(size, 7, 3);
    if (size > 60) {
      EXPECT_NE(sorted, order_of(size, 7, 4));
      EXPECT_NE(sorted, order_of(size, 3, 7));
    }
    std::sort(sorted.begin(), sorted.end());
    Order expected(size);
    std::iota(expected.begin(), expected.end(), std::uint64_t{0});
    EXPECT_EQ(sorted, expected) << size;
  }
}

TEST(Permutation, GivesEveryOrderOfAFewSamplesAlike) {
  for (const std::uint64_t size : std::initializer_list<std::uint64_t>{2, 3, 4, 5}) {
    std::map<Order, double> seen;
    Order order(size);
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    do {
      seen[order] = 0;
    } while (std::next_permutation(order.begin(), order.end()));
    for (std::uint64_t seed = 0; seed < 200 * seen.size(); ++seed) ++seen[order_of(size, seed, 0)];
    std::vector<double> counts;
    for (const auto& [one, count] : seen) counts.push_back(count);
    EXPECT_LT(excess(counts), kSurprise) << size;
  }
}

TEST(Permutation, PutsEverySampleAnywhereAlike) {
  for (const std::uint64_t size : std::initializer_list<std::uint64_t>{10, 64, 100, 129}) {
    std::vector<double> seen(size * size);
    for (std::uint64_t epoch = 0; epoch < 2000; ++epoch) {
      const Order order = order_of(size, 42, epoch);
      for (std::uint64_t at = 0; at < size; ++at) ++seen[at * size + order[at]];
    }
    EXPECT_LT(excess(seen), kSurprise) << size;
  }
}

/// A sample does not determine its successor: neighbours in the data set are not kept together.
TEST(Permutation, PutsEverySampleBehindAnyOtherAlike) {
  for (const std::uint64_t size : std::initializer_list<std::uint64_t>{10, 64, 100}) {
    std::vector<double> distances(size - 1);
    for (std::uint64_t epoch = 0; epoch < 2000; ++epoch) {
      const Order order = order_of(size, 42, epoch);
      for (std::uint64_t at = 0; at + 1 < size; ++at) {
        ++distances[(order[at + 1] + size - order[at]) % size - 1];
      }
    }
    // Distances in one order depend on each other a little; the bound has room for it.
    EXPECT_LT(excess(distances), 2 * kSurprise) << size;
  }
}

TEST(Permutation, IsAsRandomInTheMiddleOfManySamples) {
  constexpr std::uint64_t kSize = 1000003;
  std::vector<double> seen(1000);
  const Permutation permutation(kSize, 9, 1);
  for (std::uint64_t at = 500000; at < 600000; ++at) {
    ++seen[permutation(at) * seen.size() / kSize];
  }
  EXPECT_LT(std::abs(excess(seen)), kSurprise);
}

}  // namespace
}  // namespace elastic::training
