#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <elastic/elastic.hpp>

/// Contributions that are small whole numbers, and what they are reduced to: exact in every type
/// and order.
namespace elastic::testing::small_numbers {

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <typename T>
using Wide = std::conditional_t<kIsHalf<T>, float, T>;

inline std::int64_t whole_number(int rank, std::size_t i, bool is_signed) {
  const auto value = static_cast<std::int64_t>((static_cast<std::size_t>(rank) * 5 + i) % 7);
  return is_signed ? value - 3 : value % 4;
}

template <typename T>
std::vector<T> contribution(int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = T(static_cast<Wide<T>>(whole_number(rank, i, !std::is_same_v<T, std::uint8_t>)));
  }
  return values;
}

template <typename T>
T combined(int ranks, std::size_t i, ReduceOp op) {
  std::int64_t result = whole_number(0, i, !std::is_same_v<T, std::uint8_t>);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::int64_t next = whole_number(rank, i, !std::is_same_v<T, std::uint8_t>);
    if (op == ReduceOp::kSum || op == ReduceOp::kAverage) result += next;
    if (op == ReduceOp::kProduct) result *= next;
    if (op == ReduceOp::kMin) result = std::min(result, next);
    if (op == ReduceOp::kMax) result = std::max(result, next);
  }
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(op == ReduceOp::kAverage ? result / ranks : result);
  } else {
    const auto wide = static_cast<Wide<T>>(result);
    return T(op == ReduceOp::kAverage ? wide / static_cast<Wide<T>>(ranks) : wide);
  }
}

template <typename T>
std::vector<T> expected(int ranks, std::size_t count, ReduceOp op) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = combined<T>(ranks, i, op);
  return values;
}

}  // namespace elastic::testing::small_numbers
