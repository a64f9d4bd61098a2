#include "collectives/kernels/finite.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "elastic/types.hpp"

namespace elastic::kernels {
namespace {

template <typename T>
class Finite : public ::testing::Test {};
using Floats = ::testing::Types<float16, bfloat16, float, double>;
TYPED_TEST_SUITE(Finite, Floats);

template <typename T>
std::size_t first(const std::vector<T>& values) {
  return first_not_finite(dtype_of<T>, values.data(), values.size());
}

TYPED_TEST(Finite, FindsTheFirstNanOrInfWhereverItIs) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float not_a_number = std::numeric_limits<float>::quiet_NaN();
  constexpr std::size_t kCount = 2500;  // more than two blocks
  for (const float bad : {infinity, -infinity, not_a_number, -not_a_number}) {
    for (const std::size_t at : {0U, 1U, 1023U, 1024U, 2047U, 2498U, 2499U}) {
      std::vector<TypeParam> values(kCount, TypeParam(1.5F));
      values[at] = TypeParam(bad);
      values.back() = TypeParam(bad);
      EXPECT_EQ(first(values), at) << bad;
    }
  }
}

TYPED_TEST(Finite, TakesTheLargestAndTheSmallestNumbersForFinite) {
  // The largest has all bits of the exponent but the last.
  TypeParam largest;
  std::vector<unsigned char> bytes(sizeof(TypeParam), 0xff);
  const std::size_t high = sizeof(TypeParam) - 1;
  if constexpr (std::is_same_v<TypeParam, float16>) {
    bytes[high] = 0x7b;
  } else if constexpr (std::is_same_v<TypeParam, double>) {
    bytes[high] = 0x7f;
    bytes[high - 1] = 0xef;
  } else {
    bytes[high] = 0x7f;
    bytes[high - 1] = 0x7f;
  }
  std::memcpy(&largest, bytes.data(), bytes.size());
  const std::vector<TypeParam> values{largest, TypeParam(0.0F), TypeParam(-0.0F), TypeParam(-1.0F)};
  EXPECT_EQ(first(values), values.size());
  EXPECT_EQ(first(std::vector<TypeParam>{}), 0U);
}

TEST(FirstNotFinite, NeedsNoAlignment) {
  std::vector<std::byte> bytes(4 * sizeof(float) + 1);
  const float bad = std::numeric_limits<float>::infinity();
  std::memcpy(bytes.data() + 1 + 2 * sizeof(float), &bad, sizeof(bad));
  EXPECT_EQ(first_not_finite(DType::kF32, bytes.data() + 1, 4), 2U);
}

TEST(FirstNotFinite, IntegersAlwaysAre) {
  const std::vector<std::int32_t> values(10, -1);
  EXPECT_EQ(first(values), values.size());
}

}  // namespace
}  // namespace elastic::kernels
