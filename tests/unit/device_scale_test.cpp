#include "collectives/kernels/device/device_scale.hpp"

#include <algorithm>
#include <cstdint>
#include <rapidcheck.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace elastic::kernels::device {
namespace {

__extension__ using Product = unsigned __int128;

/// The quotient as the device computes it.
std::uint64_t quotient(std::uint64_t magnitude, const DeviceScale& scale) {
  return static_cast<std::uint64_t>(Product{magnitude} * scale.reciprocal >> 64) >> scale.shift;
}

RC_GTEST_PROP(DeviceScaleProperty, QuotientsOfIntegersAreExact, ()) {
  const auto divisor = *rc::gen::distinctFrom(rc::gen::arbitrary<std::uint32_t>(), 0U);
  const auto near = *rc::gen::inRange<std::uint64_t>(0, 3);
  const auto times = *rc::gen::arbitrary<std::uint32_t>();
  RC_PRE(divisor > 1U);
  const DeviceScale scale = device_scale({1, divisor});
  constexpr std::uint64_t kMost = std::uint64_t{1} << 63;
  const std::uint64_t edge = std::min(kMost, std::uint64_t{divisor} * times);
  for (const std::uint64_t magnitude : {edge - (edge > near ? near : 0), edge, kMost, kMost - 1,
                                        *rc::gen::arbitrary<std::uint64_t>() >> 1}) {
    RC_ASSERT(quotient(magnitude, scale) == magnitude / divisor);
  }
}

TEST(DeviceScale, QuotientsOfSmallIntegersAreExact) {
  for (std::uint32_t divisor = 2; divisor < 1000; ++divisor) {
    const DeviceScale scale = device_scale({1, divisor});
    for (std::uint32_t magnitude = 0; magnitude < 256; ++magnitude) {
      ASSERT_EQ(magnitude * scale.small_reciprocal >> 16, magnitude / divisor) << divisor;
      ASSERT_EQ(quotient(magnitude, scale), magnitude / divisor) << divisor;
    }
  }
}

TEST(DeviceScale, FloatsAreMultipliedByTheReciprocalOfAPowerOfTwo) {
  const DeviceScale eighth = device_scale({1, 8});
  EXPECT_EQ(eighth.factor, 0.125);
  EXPECT_TRUE(eighth.multiplies);
  EXPECT_FALSE(eighth.divides);
  const DeviceScale third = device_scale({1, 3});
  EXPECT_FALSE(third.multiplies);
  EXPECT_TRUE(third.divides);
  const DeviceScale both = device_scale({0.3, 8});
  EXPECT_TRUE(both.multiplies);
  EXPECT_TRUE(both.divides);
}

}  // namespace
}  // namespace elastic::kernels::device
