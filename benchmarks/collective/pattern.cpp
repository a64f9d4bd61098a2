#include "benchmarks/collective/pattern.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "elastic/half.hpp"

namespace elastic::bench {

namespace {

template <typename T>
inline constexpr bool kIsFloat =
    std::is_floating_point_v<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// The type for computations with T. Unsigned, so that integers wrap around as in the library.
template <typename T>
using Wide = std::conditional_t<kIsFloat<T>, double, std::uint64_t>;

// Calls `function` with a value of the element type.
template <typename Function>
auto with_type(DType dtype, Function function) {
  switch (dtype) {
    case DType::kF16:
      return function(float16());
    case DType::kBF16:
      return function(bfloat16());
    case DType::kF32:
      return function(float());
    case DType::kF64:
      return function(double());
    case DType::kI8:
      return function(std::int8_t());
    case DType::kU8:
      return function(std::uint8_t());
    case DType::kI32:
      return function(std::int32_t());
    case DType::kU32:
      return function(std::uint32_t());
    case DType::kU64:
      return function(std::uint64_t());
    case DType::kI16:
      return function(std::int16_t());
    case DType::kU16:
      return function(std::uint16_t());
    case DType::kBool:
      return function(bool());
    case DType::kI64:
      break;
  }
  return function(std::int64_t());
}

template <typename T>
T rounded_to(Wide<T> wide) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return T(static_cast<float>(wide));
  } else {
    return static_cast<T>(wide);
  }
}

template <typename T>
bool same(T left, T right) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return left.bits == right.bits;
  } else {
    return left == right;
  }
}

// A pseudorandom value from 1 to 4; 1 or 2 for products, which grow faster.
unsigned value_at(ReduceOp op, int rank, std::size_t place) {
  std::uint64_t mixed =
      place * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(rank + 1) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 31)) * 0x94d049bb133111ebU;
  const unsigned most = op == ReduceOp::kProduct ? 2 : 4;
  return 1 + static_cast<unsigned>(mixed >> 40) % most;
}

/// The input at `place`. For bools, odd values are true.
template <typename T>
Wide<T> input_at(ReduceOp op, int rank, std::size_t place) {
  const unsigned value = value_at(op, rank, place);
  return std::is_same_v<T, bool> ? value % 2 : value;
}

template <typename T>
T reduced_at(ReduceOp op, int ranks, std::size_t place) {
  Wide<T> total = input_at<T>(op, 0, place);
  for (int rank = 1; rank < ranks; ++rank) {
    const Wide<T> value = input_at<T>(op, rank, place);
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAverage:
        total += value;
        break;
      case ReduceOp::kMin:
        total = std::min(total, value);
        break;
      case ReduceOp::kMax:
        total = std::max(total, value);
        break;
      case ReduceOp::kProduct:
        total *= value;
        break;
      default:
        break;  // not in `all_ops`
    }
  }
  if (op != ReduceOp::kAverage) return rounded_to<T>(total);
  if constexpr (std::is_same_v<T, double>) {
    return total / ranks;
  } else if constexpr (kIsFloat<T>) {
    return rounded_to<T>(
        static_cast<double>(static_cast<float>(total) / static_cast<float>(ranks)));
  } else {
    // As in the library, the sum wraps around in T before it is divided.
    return static_cast<T>(static_cast<std::int64_t>(rounded_to<T>(total)) / ranks);
  }
}

// The number of elements unlike the repeated `period`, from the period's element `place` on.
std::int64_t count_unlike(const ConstTensorView& tensor, const std::vector<std::byte>& period,
                          std::size_t place) {
  return with_type(tensor.dtype, [&]<typename T>(T) {
    const T* values = static_cast<const T*>(tensor.data);
    const T* expected = reinterpret_cast<const T*>(period.data());
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < tensor.count; ++i) {
      if (!same(values[i], expected[place])) ++wrong;
      if (++place == Pattern::kPeriod) place = 0;
    }
    return wrong;
  });
}

}  // namespace

Pattern::Pattern(DType dtype, ReduceOp op, int ranks)
    : op_(op), expected_(kPeriod * size_of(dtype)) {
  with_type(dtype, [&]<typename T>(T) {
    T* expected = reinterpret_cast<T*>(expected_.data());
    for (std::size_t i = 0; i < kPeriod; ++i) expected[i] = reduced_at<T>(op, ranks, i);
  });
}

void Pattern::fill(TensorView tensor, int rank) const {
  with_type(tensor.dtype, [&]<typename T>(T) {
    T* values = static_cast<T*>(tensor.data);
    const std::size_t first = std::min(tensor.count, kPeriod);
    for (std::size_t i = 0; i < first; ++i) {
      values[i] = rounded_to<T>(input_at<T>(op_, rank, i));
    }
    for (std::size_t i = kPeriod; i < tensor.count; ++i) values[i] = values[i - kPeriod];
  });
}

std::int64_t Pattern::count_wrong(ConstTensorView tensor, std::size_t first) const {
  return count_unlike(tensor, expected_, first % kPeriod);
}

std::int64_t Pattern::count_unlike_input(ConstTensorView tensor, int rank,
                                         std::size_t first) const {
  std::vector<std::byte> input(expected_.size());
  fill({input.data(), kPeriod, tensor.dtype}, rank);
  return count_unlike(tensor, input, first % kPeriod);
}

}  // namespace elastic::bench
