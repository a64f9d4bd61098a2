#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "elastic/half.hpp"

namespace elastic {

/// Element types that collectives understand.
enum class DType : std::uint8_t { kF16, kBF16, kF32, kF64, kI8, kU8, kI32, kI64 };

/// How contributions are combined, element by element. kAverage divides the sum by the number of
/// workers that contributed (integers truncate towards zero).
enum class ReduceOp : std::uint8_t { kSum, kAverage, kMin, kMax, kProduct };

/// Where a tensor lies. Collectives take tensors in host memory and on CUDA devices; everything
/// else takes those in host memory only, which includes what cudaMallocHost gives. What
/// cudaMallocManaged gives may be called either.
struct Device {
  enum class Kind : std::uint8_t { kHost, kCuda };
  Kind kind = Kind::kHost;
  int index = 0;  ///< CUDA's number of the device in this process; 0 for the host.
};

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kI8:
    case DType::kU8:
      return 1;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
    case DType::kI64:
      return 8;
  }
  return 0;
}

namespace detail {
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float16> : std::integral_constant<DType, DType::kF16> {};
template <>
struct DTypeOf<bfloat16> : std::integral_constant<DType, DType::kBF16> {};
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::kF32> {};
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::kF64> {};
template <>
struct DTypeOf<std::int8_t> : std::integral_constant<DType, DType::kI8> {};
template <>
struct DTypeOf<std::uint8_t> : std::integral_constant<DType, DType::kU8> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<DType, DType::kI32> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<DType, DType::kI64> {};
}  // namespace detail

/// A C++ type that is an element type.
template <typename T>
concept Element = requires {
  detail::DTypeOf<std::remove_cv_t<T>>::value;
};

template <Element T>
inline constexpr DType dtype_of = detail::DTypeOf<std::remove_cv_t<T>>::value;

/// Read-only tensor: `count` elements of `dtype` at `data`. Does not own them.
struct ConstTensorView {
  const void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::kF32;
  Device device{};

  constexpr std::size_t bytes() const { return count * size_of(dtype); }
};

/// Writable tensor: `count` elements of `dtype` at `data`. Does not own them.
struct TensorView {
  void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::kF32;
  Device device{};

  constexpr std::size_t bytes() const { return count * size_of(dtype); }
  constexpr operator ConstTensorView() const { return {data, count, dtype, device}; }
};

/// Views host memory as a tensor.
template <Element T>
requires(!std::is_const_v<T>) constexpr TensorView view(std::span<T> data) {
  return {data.data(), data.size(), dtype_of<T>, {}};
}
template <Element T>
constexpr ConstTensorView view(std::span<const T> data) {
  return {data.data(), data.size(), dtype_of<T>, {}};
}

/// Views memory of a CUDA device as a tensor: `count` elements at `data`, on device `index`.
template <Element T>
requires(!std::is_const_v<T>) constexpr TensorView
    cuda_view(T* data, std::size_t count, int index = 0) {
  return {data, count, dtype_of<T>, {Device::Kind::kCuda, index}};
}
template <Element T>
constexpr ConstTensorView cuda_view(const T* data, std::size_t count, int index = 0) {
  return {data, count, dtype_of<T>, {Device::Kind::kCuda, index}};
}

}  // namespace elastic
