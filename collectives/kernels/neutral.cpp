#include "collectives/kernels/neutral.hpp"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "collectives/kernels/element_type.hpp"

namespace elastic::kernels {
namespace {

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

template <typename T>
T greatest() {
  if constexpr (kIsHalf<T>) {
    return T(std::numeric_limits<float>::infinity());
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::numeric_limits<T>::infinity();
  } else {
    return std::numeric_limits<T>::max();
  }
}

template <typename T>
T least() {
  if constexpr (kIsHalf<T>) {
    return T(-std::numeric_limits<float>::infinity());
  } else if constexpr (std::is_floating_point_v<T>) {
    return -std::numeric_limits<T>::infinity();
  } else {
    return std::numeric_limits<T>::min();
  }
}

template <typename T>
T number(int value) {
  if constexpr (kIsHalf<T>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <typename T>
T all_ones() {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(~T{0});
  } else {
    return number<T>(0);  // bits of floats are not combined
  }
}

template <typename T>
T neutral(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin:
      return greatest<T>();
    case ReduceOp::kMax:
      return least<T>();
    case ReduceOp::kProduct:
    case ReduceOp::kLogicalAnd:
      return number<T>(1);
    case ReduceOp::kBitAnd:
      return all_ones<T>();
    default:
      break;
  }
  return number<T>(0);
}

}  // namespace

void fill_neutral(DType dtype, ReduceOp op, std::byte* data, std::size_t elements) {
  with_element_of(dtype, [&]<typename T>(T) {
    T value = neutral<T>(op);
    if constexpr (std::is_same_v<T, std::uint8_t>) {
      if (dtype == DType::kBool && value != 0) value = 1;
    }
    for (std::size_t i = 0; i < elements; ++i) std::memcpy(data + i * sizeof(T), &value, sizeof(T));
  });
}

}  // namespace elastic::kernels
