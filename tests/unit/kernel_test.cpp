#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/kernels/reduce.hpp"

namespace elastic::kernels {
namespace {

template <typename T>
std::vector<T> combined(Function function, const std::vector<T>& left,
                        const std::vector<T>& right) {
  std::vector<T> into(left.size());
  function(reinterpret_cast<std::byte*>(into.data()),
           reinterpret_cast<const std::byte*>(left.data()),
           reinterpret_cast<const std::byte*>(right.data()), into.size());
  return into;
}

template <typename H>
std::uint16_t bits_of(float value) {
  return H(value).bits;
}

TEST(Reduce, CombinesFloats) {
  const std::vector<float> a{1.5F, -2, 3, 0, 5, 6, 7, 8, 9};
  const std::vector<float> b{2, 7, -3, 0.25F, 1, 1, 1, 1, -9};
  EXPECT_EQ(combined(reduce(DType::kF32, ReduceOp::kSum), a, b),
            (std::vector<float>{3.5F, 5, 0, 0.25F, 6, 7, 8, 9, 0}));
  EXPECT_EQ(combined(reduce(DType::kF32, ReduceOp::kMin), a, b),
            (std::vector<float>{1.5F, -2, -3, 0, 1, 1, 1, 1, -9}));
  EXPECT_EQ(combined(reduce(DType::kF32, ReduceOp::kMax), a, b),
            (std::vector<float>{2, 7, 3, 0.25F, 5, 6, 7, 8, 9}));
  EXPECT_EQ(combined(reduce(DType::kF32, ReduceOp::kProduct), a, b),
            (std::vector<float>{3, -14, -9, 0, 5, 6, 7, 8, -81}));
}

TEST(Reduce, IntegersWrapAround) {
  const std::vector<std::int32_t> a{std::numeric_limits<std::int32_t>::max(), -1};
  const std::vector<std::int32_t> b{1, std::numeric_limits<std::int32_t>::min()};
  EXPECT_EQ(combined(reduce(DType::kI32, ReduceOp::kSum), a, b),
            (std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(),
                                       std::numeric_limits<std::int32_t>::max()}));
  const std::vector<std::int64_t> c{std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(combined(reduce(DType::kI64, ReduceOp::kProduct), c, std::vector<std::int64_t>{2}),
            (std::vector<std::int64_t>{-2}));
  EXPECT_EQ(combined(reduce(DType::kU8, ReduceOp::kSum), std::vector<std::uint8_t>{250},
                     std::vector<std::uint8_t>{10}),
            (std::vector<std::uint8_t>{4}));
  EXPECT_EQ(combined(reduce(DType::kI8, ReduceOp::kMin), std::vector<std::int8_t>{-100},
                     std::vector<std::int8_t>{10}),
            (std::vector<std::int8_t>{-100}));
}

TEST(Reduce, CombinesBitByBit) {
  const std::vector<std::uint16_t> a{0xff00, 0x1234, 0};
  const std::vector<std::uint16_t> b{0x0ff0, 0x1234, 1};
  EXPECT_EQ(combined(reduce(DType::kU16, ReduceOp::kBitAnd), a, b),
            (std::vector<std::uint16_t>{0x0f00, 0x1234, 0}));
  EXPECT_EQ(combined(reduce(DType::kI16, ReduceOp::kBitOr), a, b),
            (std::vector<std::uint16_t>{0xfff0, 0x1234, 1}));
  EXPECT_EQ(combined(reduce(DType::kU16, ReduceOp::kBitXor), a, b),
            (std::vector<std::uint16_t>{0xf0f0, 0, 1}));
}

TEST(Reduce, LogicalResultsAreZeroOrOne) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{0, -0.0F, 7, kNan, 1e-45F, 0};
  const std::vector<float> b{0, 2.5F, -3, 0, 1e-45F, -0.0F};
  EXPECT_EQ(combined(reduce(DType::kF32, ReduceOp::kLogicalAnd), a, b),
            (std::vector<float>{0, 0, 1, 0, 1, 0}));
  EXPECT_EQ(combined(reduce(DType::kF32, ReduceOp::kLogicalOr), a, b),
            (std::vector<float>{0, 1, 1, 1, 1, 0}));
  EXPECT_EQ(combined(reduce(DType::kF32, ReduceOp::kLogicalXor), a, b),
            (std::vector<float>{0, 1, 0, 1, 0, 0}));
  const std::vector<std::uint16_t> halves{bits_of<bfloat16>(-4), bits_of<bfloat16>(-0.0F)};
  EXPECT_EQ(combined(reduce(DType::kBF16, ReduceOp::kLogicalOr), halves, halves),
            (std::vector<std::uint16_t>{bits_of<bfloat16>(1), 0}));
}

TEST(Reduce, HalvesAreRoundedOnce) {
  // 2048 + 1 lies between two binary16 values and goes to the even one.
  const std::vector<std::uint16_t> a{bits_of<float16>(2048), bits_of<float16>(65504)};
  const std::vector<std::uint16_t> b{bits_of<float16>(1), bits_of<float16>(65504)};
  EXPECT_EQ(combined(reduce(DType::kF16, ReduceOp::kSum), a, b),
            (std::vector<std::uint16_t>{bits_of<float16>(2048), 0x7c00}));
  const std::vector<std::uint16_t> c{bits_of<bfloat16>(256)};
  const std::vector<std::uint16_t> d{bits_of<bfloat16>(1)};
  EXPECT_EQ(combined(reduce(DType::kBF16, ReduceOp::kSum), c, d),
            (std::vector<std::uint16_t>{bits_of<bfloat16>(256)}));
}

TEST(Reduce, NanIsAlwaysTheSameNan) {
  const float odd_nan = std::bit_cast<float>(0xffc12345U);
  const float other_nan = std::bit_cast<float>(0x7fc54321U);
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
    const std::vector<float> a{odd_nan, 1, odd_nan, 2, odd_nan, 1, odd_nan, 2, odd_nan};
    const std::vector<float> b{1, odd_nan, other_nan, 2, 1, odd_nan, other_nan, 2, 1};
    const auto result = combined(reduce(DType::kF32, op), a, b);
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (i % 4 == 3) {
        EXPECT_FALSE(std::isnan(result[i]));
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(result[i]), 0x7fc00000U);
      }
    }
  }
}

TEST(Reduce, LeftIsTheLeastOrGreatestOfTwoZeros) {
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    for (const float left : {0.0F, -0.0F}) {
      const auto result = combined(reduce(DType::kF32, op), std::vector{left}, std::vector{-left});
      EXPECT_EQ(std::signbit(result[0]), std::signbit(left));
    }
  }
}

TEST(Reduce, EveryHalfSumsLikeItsFloat) {
  std::vector<std::uint16_t> a(65536);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint16_t>(i);
  const std::vector<std::uint16_t> b(a.size(), bits_of<float16>(0.333F));
  const auto sum = combined(reduce(DType::kF16, ReduceOp::kSum), a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float exact = static_cast<float>(std::bit_cast<float16>(a[i])) +
                        static_cast<float>(std::bit_cast<float16>(b[i]));
    ASSERT_EQ(sum[i], std::isnan(exact) ? 0x7e00 : float16(exact).bits) << i;
  }
}

template <typename T>
std::vector<T> divided(std::vector<T> values, DType dtype, std::uint32_t divisor) {
  divide(dtype, reinterpret_cast<std::byte*>(values.data()), values.size(), divisor);
  return values;
}

TEST(Divide, FloatsAndTruncatedIntegers) {
  EXPECT_EQ(divided(std::vector<float>{1, -6}, DType::kF32, 3),
            (std::vector<float>{1.0F / 3.0F, -2}));
  EXPECT_EQ(divided(std::vector<double>{1}, DType::kF64, 3), (std::vector<double>{1.0 / 3.0}));
  EXPECT_EQ(divided(std::vector<std::int32_t>{-7, 7, 8}, DType::kI32, 2),
            (std::vector<std::int32_t>{-3, 3, 4}));
  EXPECT_EQ(divided(std::vector<std::int64_t>{-7}, DType::kI64, 2),
            (std::vector<std::int64_t>{-3}));
  EXPECT_EQ(divided(std::vector<std::uint8_t>{255}, DType::kU8, 300),
            (std::vector<std::uint8_t>{0}));
  EXPECT_EQ(divided(std::vector<std::uint16_t>{bits_of<float16>(9)}, DType::kF16, 3),
            (std::vector<std::uint16_t>{bits_of<float16>(3)}));
  EXPECT_EQ(divided(std::vector<std::uint16_t>{bits_of<bfloat16>(9)}, DType::kBF16, 3),
            (std::vector<std::uint16_t>{bits_of<bfloat16>(3)}));
}

}  // namespace
}  // namespace elastic::kernels
