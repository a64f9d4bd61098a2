#include "training/fixed_point.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::training {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
double magnitude_of(std::vector<T> values) {
  return magnitude(view(std::span<T>(values)));
}

TEST(FixedPoint, MagnitudeIsTheGreatest) {
  EXPECT_EQ(magnitude_of<float>({}), 0);
  EXPECT_EQ(magnitude_of<float>({0, -0.0F}), 0);
  EXPECT_EQ(magnitude_of<float>({1, -3.5F, 2}), 3.5);
  EXPECT_EQ(magnitude_of<float>({0x1p-149F}), 0x1p-149);
  EXPECT_EQ(magnitude_of<double>({1e-300, -1e300}), 1e300);
  EXPECT_EQ(magnitude_of<float16>({float16(-2.0F), float16(1.0F)}), 2);
  EXPECT_EQ(magnitude_of<bfloat16>({bfloat16(-2.0F), bfloat16(1.0F)}), 2);
}

TEST(FixedPoint, MagnitudeOfWhatIsNotFiniteIsInfinity) {
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    EXPECT_EQ(magnitude_of<float>({1, bad, 2}), std::numeric_limits<double>::infinity());
    EXPECT_EQ(magnitude_of<bfloat16>({bfloat16(bad), bfloat16(2.0F)}),
              std::numeric_limits<double>::infinity());
  }
}

TEST(FixedPoint, ExponentLeavesRoomForAllSummands) {
  EXPECT_EQ(fixed_exponent(0, 8), 0);
  EXPECT_EQ(fixed_exponent(1, 1), 49);  // 1 < 2^1
  EXPECT_EQ(fixed_exponent(0.75, 1), 50);
  EXPECT_EQ(fixed_exponent(0.75, 4096), 50);
  EXPECT_EQ(fixed_exponent(0.75, 4097), 49);
  EXPECT_EQ(fixed_exponent(0.75, 1 << 20), 42);
  EXPECT_EQ(fixed_exponent(0x1p127, 1), 50 - 128);
}

/// The greatest sums that there can be do not overflow, and the smallest numbers are not out of
/// range on the way.
TEST(FixedPoint, IsInRangeAtTheLimits) {
  for (const double greatest :
       {double{std::numeric_limits<float>::max()}, 1.0, 0x1p-149, 0x1p1023, 0x1p-1074}) {
    for (const std::size_t summands : std::initializer_list<std::size_t>{1, 3, 8, 1 << 20}) {
      std::vector<double> value{greatest, -greatest};
      const int exponent = fixed_exponent(greatest, summands);
      std::vector<std::int64_t> sums(2);
      add_fixed(view(std::span(value)), exponent, sums);
      EXPECT_LE(sums[0], std::int64_t{1} << 50);
      EXPECT_LE(sums[0], (std::int64_t{1} << 62) / static_cast<std::int64_t>(summands));
      EXPECT_GE(sums[0], std::int64_t{1} << 41);
      EXPECT_EQ(sums[1], -sums[0]);
      from_fixed(sums, exponent, view(std::span(value)));
      EXPECT_EQ(value[0], greatest);
    }
  }
}

TEST(FixedPoint, SumsAreThoseOfDoublesInAnyOrder) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> summands(64);
  for (float& one : summands)
    one = std::ldexp(uniform(random), static_cast<int>(random() % 20) - 10);
  const int exponent = fixed_exponent(magnitude_of(summands), summands.size());
  double expected = 0;
  for (const float one : summands) expected += double{one};
  std::int64_t first = 0;
  for (int order = 0; order < 10; ++order) {
    std::shuffle(summands.begin(), summands.end(), random);
    std::vector<std::int64_t> sum(1);
    for (float& one : summands) add_fixed(view(std::span(&one, 1)), exponent, sum);
    if (order == 0) first = sum[0];
    EXPECT_EQ(sum[0], first);
    float result = 0;
    from_fixed(sum, exponent, view(std::span(&result, 1)));
    EXPECT_EQ(result, static_cast<float>(expected));
  }
}

TEST(FixedPoint, OneSummandComesBackAsItWas) {
  std::vector<float> values{1, -0x1.fffffep0F, -0x1.000002p-24F, 0x1p-49F, 0};
  const std::vector<float> before = values;
  const int exponent = fixed_exponent(magnitude_of(values), 1);
  std::vector<std::int64_t> sums(values.size());
  add_fixed(view(std::span(values)), exponent, sums);
  from_fixed(sums, exponent, view(std::span(values)));
  EXPECT_EQ(values, before);
}

TEST(FixedPoint, SetsToNan) {
  std::vector<float> values{1, 2};
  set_to_nan(view(std::span(values)));
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
}

}  // namespace
}  // namespace elastic::training
