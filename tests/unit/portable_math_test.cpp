#include "training/portable_math.hpp"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace elastic::training {
namespace {

constexpr int kPoints = 20000;

TEST(PortableMath, HalfCosineIsThatOfTheLibrary) {
  EXPECT_EQ(half_cosine(0), 1);
  EXPECT_EQ(half_cosine(1), 0);
  for (int at = 0; at <= kPoints; ++at) {
    const double part = static_cast<double>(at) / kPoints;
    EXPECT_NEAR(half_cosine(part), (1 + std::cos(std::numbers::pi * part)) / 2, 3e-16) << part;
  }
}

TEST(PortableMath, PowerIsThatOfTheLibrary) {
  for (const double exponent : {0.1, 0.5, 0.9, 1.0, 2.0, 3.7, 40.0}) {
    EXPECT_EQ(power(0, exponent), 0);
    EXPECT_EQ(power(1, exponent), 1);
    for (int at = 1; at < kPoints; ++at) {
      const double base = static_cast<double>(at) / kPoints;
      const double expected = std::pow(base, exponent);
      // The argument of exp has a few roundings, which count in proportion to its magnitude.
      const double roundings = 8 * (1 - exponent * std::log(base));
      EXPECT_NEAR(power(base, exponent), expected, roundings * 0x1p-53 * expected)
          << base << "^" << exponent;
    }
  }
}

TEST(PortableMath, PowersThatVanishAreZero) {
  EXPECT_EQ(power(0.5, 1e300), 0);
  EXPECT_EQ(power(0x1p-60, 1e4), 0);
}

}  // namespace
}  // namespace elastic::training
