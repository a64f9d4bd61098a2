#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "elastic/half.hpp"
#include "elastic/types.hpp"

namespace elastic::training {

/// Calls `use` with the elements of a host tensor (a TensorView or ConstTensorView), as a span of
/// their type.
template <typename View, typename Use>
void with_elements(const View& tensor, Use use) {
  const auto call = [&]<typename T>(std::type_identity<T>) {
    using Element = std::conditional_t<std::is_same_v<View, ConstTensorView>, const T, T>;
    use(std::span<Element>(static_cast<Element*>(tensor.data), tensor.count));
  };
  switch (tensor.dtype) {
    case DType::kF16:
      return call(std::type_identity<float16>());
    case DType::kBF16:
      return call(std::type_identity<bfloat16>());
    case DType::kF32:
      return call(std::type_identity<float>());
    case DType::kF64:
      return call(std::type_identity<double>());
    case DType::kI8:
      return call(std::type_identity<std::int8_t>());
    case DType::kU8:
      return call(std::type_identity<std::uint8_t>());
    case DType::kI32:
      return call(std::type_identity<std::int32_t>());
    case DType::kI64:
      return call(std::type_identity<std::int64_t>());
    case DType::kU32:
      return call(std::type_identity<std::uint32_t>());
    case DType::kU64:
      return call(std::type_identity<std::uint64_t>());
    case DType::kI16:
      return call(std::type_identity<std::int16_t>());
    case DType::kU16:
      return call(std::type_identity<std::uint16_t>());
    case DType::kBool:
      return call(std::type_identity<bool>());
  }
}

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <typename T>
inline constexpr bool kIsReal = std::is_floating_point_v<T> || kIsHalf<T>;

constexpr bool is_real_dtype(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

/// A real element's value, exactly.
template <typename T>
requires kIsReal<T>
double widened(T value) {
  if constexpr (kIsHalf<T>)
    return double{static_cast<float>(value)};
  else
    return double{value};
}

/// The nearest element; beyond its range, infinity.
template <typename T>
requires kIsReal<T> T rounded_to(double value) {
  if constexpr (kIsHalf<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

}  // namespace elastic::training
