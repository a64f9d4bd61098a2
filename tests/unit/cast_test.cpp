#include "collectives/kernels/cast.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::kernels {
namespace {

template <typename Half, typename Wide>
std::vector<Half> halves_of(const std::vector<Wide>& values, double factor = 1) {
  std::vector<Half> halves(values.size());
  cast(dtype_of<Wide>, reinterpret_cast<const std::byte*>(values.data()), values.size(), factor,
       dtype_of<Half>, reinterpret_cast<std::byte*>(halves.data()));
  return halves;
}

template <typename Wide, typename Half>
std::vector<Wide> widened(const std::vector<Half>& halves, double factor = 1,
                          std::uint32_t divisor = 1) {
  std::vector<Wide> values(halves.size());
  widen(dtype_of<Half>, reinterpret_cast<const std::byte*>(halves.data()), halves.size(), factor,
        divisor, dtype_of<Wide>, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

TEST(Cast, ScalesAndRoundsOnce) {
  const std::vector<float> values{0x1p-26F, 3, -0.1F, 70000};
  const auto halves = halves_of<float16>(values, 1024);
  EXPECT_EQ(halves[0].bits, float16(0x1p-16F).bits) << "it would be 0 without the scale";
  EXPECT_EQ(halves[1].bits, float16(3072).bits);
  EXPECT_EQ(halves[2].bits, float16(-0.1F * 1024).bits);
  EXPECT_EQ(halves[3].bits, 0x7c00) << "overflow is infinite";
  EXPECT_EQ(halves_of<bfloat16>(values, 1)[2].bits, bfloat16(-0.1F).bits);
}

/// 1 + 2^-11 + 2^-40 is above the middle between two halves, and exactly there as an f32.
TEST(Cast, DoublesGoByWayOfFloats) {
  EXPECT_EQ(halves_of<float16>(std::vector<double>{1 + 0x1p-11 + 0x1p-40})[0].bits,
            float16(1.0F).bits);
}

TEST(Cast, WidensDividesAndLeavesOneNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float16> halves{float16(3072), float16(-1), float16(-nan)};
  const auto floats = widened<float>(halves, 0x1p-10, 7);
  EXPECT_EQ(floats[0], 3.0F / 7);
  EXPECT_EQ(floats[1], -0x1p-10F / 7);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(floats[2]), 0x7fc00000U);
  const auto doubles = widened<double>(halves, 1, 3);
  EXPECT_EQ(doubles[0], 1024.0);
  EXPECT_EQ(doubles[1], -1.0 / 3) << "not of an f32";
}

TEST(Cast, EveryHalfComesBack) {
  std::vector<bfloat16> halves(0x7f80);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i].bits = static_cast<std::uint16_t>(i);
  const auto back = halves_of<bfloat16>(widened<float>(halves));
  for (std::size_t i = 0; i < halves.size(); ++i) ASSERT_EQ(back[i].bits, halves[i].bits);
}

}  // namespace
}  // namespace elastic::kernels
