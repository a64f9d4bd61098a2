#include "collectives/kernels/extreme.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "base/dtype_names.hpp"
#include "collectives/kernels/element_type.hpp"

namespace elastic::kernels {
namespace {

using Indices = std::vector<std::int64_t>;

/// The pairs that are kept of `kept`, with the indices `kept_at`, and `others`.
template <typename T>
std::pair<std::vector<T>, Indices> kept_of(DType dtype, Extreme extreme, std::vector<T> kept,
                                           Indices kept_at, const std::vector<T>& others,
                                           const Indices& others_at) {
  keep_extremes(
      dtype, extreme,
      {std::as_writable_bytes(std::span(kept)).data(),
       std::as_writable_bytes(std::span(kept_at)).data()},
      {std::as_bytes(std::span(others)).data(), std::as_bytes(std::span(others_at)).data()},
      kept.size());
  return {kept, kept_at};
}

/// A small number in any element type.
template <typename T>
T number(int value) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

TEST(Extremes, KeepTheExtremeAndOfEqualValuesTheSmallestIndex) {
  for (const DType dtype : kDTypes) {
    with_element_of(dtype, [&]<typename T>(T) {
      const std::vector<T> zeros_and_ones = {number<T>(0), number<T>(1), number<T>(1),
                                             number<T>(1)};
      const std::vector<T> ones_and_zeros = {number<T>(1), number<T>(0), number<T>(1),
                                             number<T>(1)};
      const auto least = kept_of<T>(dtype, Extreme::kLeast, zeros_and_ones, {5, 5, 5, 5},
                                    ones_and_zeros, {1, 1, 4, 6});
      EXPECT_EQ(least.second, (Indices{5, 1, 4, 5})) << dtype_name(dtype);
      const std::vector<T> expected = {number<T>(0), number<T>(0), number<T>(1), number<T>(1)};
      EXPECT_EQ(std::memcmp(least.first.data(), expected.data(), 4 * sizeof(T)), 0)
          << dtype_name(dtype);
      const auto greatest = kept_of<T>(dtype, Extreme::kGreatest, zeros_and_ones, {5, 5, 5, 5},
                                       ones_and_zeros, {1, 1, -4, 6});
      EXPECT_EQ(greatest.second, (Indices{1, 5, -4, 5})) << dtype_name(dtype);
    });
  }
}

TEST(Extremes, HaveSigns) {
  const auto least = kept_of<std::int8_t>(DType::kI8, Extreme::kLeast, {-1}, {0}, {1}, {1});
  EXPECT_EQ(least.first.front(), -1);
  const auto unsigned_least =
      kept_of<std::uint8_t>(DType::kU8, Extreme::kLeast, {255}, {0}, {1}, {1});
  EXPECT_EQ(unsigned_least.first.front(), 1);
}

TEST(Extremes, TakeNaNBeforeEveryNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Extreme extreme : {Extreme::kLeast, Extreme::kGreatest}) {
    const double strongest = extreme == Extreme::kLeast ? -infinity : infinity;
    const auto kept = kept_of<double>(DType::kF64, extreme, {nan, strongest, nan, -nan},
                                      {9, 9, 9, 9}, {strongest, nan, nan, nan}, {1, 10, 3, 12});
    EXPECT_EQ(kept.second, (Indices{9, 10, 3, 9}));
    for (const double value : kept.first) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Extremes, TakeBothZerosForEqual) {
  for (const Extreme extreme : {Extreme::kLeast, Extreme::kGreatest}) {
    const auto kept = kept_of<float>(DType::kF32, extreme, {0.0F, -0.0F, 0.0F}, {2, 2, 2},
                                     {-0.0F, 0.0F, -0.0F}, {1, 3, 2});
    EXPECT_EQ(kept.second, (Indices{1, 2, 2}));
    EXPECT_TRUE(std::signbit(kept.first[0]) && std::signbit(kept.first[1]) &&
                !std::signbit(kept.first[2]));
  }
}

/// Values in the middle of bytes, as a block of another member has them.
TEST(Extremes, NeedNoAlignment) {
  std::array<std::byte, 1 + 2 * sizeof(double) + sizeof(std::int64_t)> memory{};
  double value = 7;
  std::int64_t index = 3;
  const double other = 5;
  std::memcpy(memory.data() + 1, &other, sizeof(other));
  keep_extremes(DType::kF64, Extreme::kLeast,
                {reinterpret_cast<std::byte*>(&value), reinterpret_cast<std::byte*>(&index)},
                {memory.data() + 1, memory.data() + 1 + sizeof(other)}, 1);
  EXPECT_EQ(value, 5);
  EXPECT_EQ(index, 0);
}

}  // namespace
}  // namespace elastic::kernels
