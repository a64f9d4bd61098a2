#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "elastic/half.hpp"

namespace elastic {

/// Element types that collectives understand. The numbers are on the wire and never change.
enum class DType : std::uint8_t {
  kF16,   ///< float16: IEEE 754 binary16
  kBF16,  ///< bfloat16: the upper half of a float
  kF32,   ///< float
  kF64,   ///< double
  kI8,    ///< std::int8_t
  kU8,    ///< std::uint8_t
  kI32,   ///< std::int32_t
  kI64,   ///< std::int64_t
  kU32,   ///< std::uint32_t
  kU64,   ///< std::uint64_t
  kI16,   ///< std::int16_t
  kU16,   ///< std::uint16_t
  kBool   ///< bool: one byte, 0 or 1
};

/// All of them, in the order of their numbers.
inline constexpr std::array kDTypes = {
    DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kI8,  DType::kU8,  DType::kI32,
    DType::kI64, DType::kU32,  DType::kU64, DType::kI16, DType::kU16, DType::kBool};

/// How contributions are combined, element by element (both Adasums: tensor by tensor). Sums and
/// products of integers wrap around. For bools kSum and kMax are "or", kProduct and kMin are "and",
/// as in NumPy and PyTorch. The logical operations take an element that is not 0 for true, and give
/// 0 or 1 in the type of the elements. The numbers are on the wire and never change.
enum class ReduceOp : std::uint8_t {
  kSum,         ///< the sum
  kAverage,     ///< the sum divided by the number of workers that contributed; integers truncate
                ///< towards zero, bools have no average
  kMin,         ///< the least
  kMax,         ///< the greatest
  kProduct,     ///< the product
  kBitAnd,      ///< bit by bit, as the next two; integers and bools only
  kBitOr,       ///< bit by bit
  kBitXor,      ///< bit by bit
  kLogicalAnd,  ///< whether all are true
  kLogicalOr,   ///< whether one is true
  kLogicalXor,  ///< whether an odd number of them is true
  kAdasum,  ///< the adaptive sum: orthogonal gradients add up, parallel ones are averaged. Floats
            ///< only, and allreduces only
  kHierarchicalAdasum  ///< the adaptive sum of the hosts' averages: the gradients of a host are
                       ///< averaged, and then combined with those of other hosts. Like kAdasum,
                       ///< floats and allreduces only
};

/// All of them, in the order of their numbers.
inline constexpr std::array kReduceOps = {ReduceOp::kSum,
                                          ReduceOp::kAverage,
                                          ReduceOp::kMin,
                                          ReduceOp::kMax,
                                          ReduceOp::kProduct,
                                          ReduceOp::kBitAnd,
                                          ReduceOp::kBitOr,
                                          ReduceOp::kBitXor,
                                          ReduceOp::kLogicalAnd,
                                          ReduceOp::kLogicalOr,
                                          ReduceOp::kLogicalXor,
                                          ReduceOp::kAdasum,
                                          ReduceOp::kHierarchicalAdasum};

/// Where a tensor lies. Collectives take tensors in host memory and on CUDA devices; everything
/// else takes those in host memory only, which includes memory from cudaMallocHost. Memory from
/// cudaMallocManaged may be called either.
struct Device {
  /// Kinds of memory.
  enum class Kind : std::uint8_t {
    kHost,  ///< memory of the host
    kCuda   ///< memory of a CUDA device
  };
  Kind kind = Kind::kHost;  ///< whose memory it is
  /// CUDA's number of the device in this process. 0 for the host: with another, as with a kind that
  /// does not exist, every call that takes tensors throws kInvalidArgument.
  int index = 0;
};

/// \returns the bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return 1;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16:
    case DType::kU16:
      return 2;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kF64:
    case DType::kI64:
    case DType::kU64:
      return 8;
  }
  return 0;
}

namespace detail {
template <typename T, typename... Types>
concept OneOf = (std::same_as<T, Types> || ...);

/// By width: on each platform one of `long` and `long long` is no std::int64_t, and yet as wide as
/// one. Characters are no numbers.
template <typename T>
concept SignedInteger = OneOf<T, signed char, short, int, long, long long>;
template <typename T>
concept UnsignedInteger =
    OneOf<T, unsigned char, unsigned short, unsigned int, unsigned long, unsigned long long>;

constexpr DType integer_dtype(std::size_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? DType::kI8 : DType::kU8;
    case 2:
      return is_signed ? DType::kI16 : DType::kU16;
    case 4:
      return is_signed ? DType::kI32 : DType::kU32;
    default:
      return is_signed ? DType::kI64 : DType::kU64;
  }
}

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
template <SignedInteger T>
struct DTypeOf<T> : std::integral_constant<DType, integer_dtype(sizeof(T), true)> {};
template <UnsignedInteger T>
struct DTypeOf<T> : std::integral_constant<DType, integer_dtype(sizeof(T), false)> {};
template <>
struct DTypeOf<bool> : std::integral_constant<DType, DType::kBool> {
  static_assert(sizeof(bool) == 1);
};
}  // namespace detail

/// A C++ type that is an element type.
template <typename T>
concept Element = requires {
  detail::DTypeOf<std::remove_cv_t<T>>::value;
};

/// The DType of a C++ type.
template <Element T>
inline constexpr DType dtype_of = detail::DTypeOf<std::remove_cv_t<T>>::value;

/// Read-only tensor: `count` elements of `dtype` at `data`. Does not own them.
struct ConstTensorView {
  const void* data = nullptr;  ///< the first element
  std::size_t count = 0;       ///< number of elements
  DType dtype = DType::kF32;   ///< their type
  Device device{};             ///< the memory that they are in

  /// \returns the size in bytes.
  constexpr std::size_t bytes() const { return count * size_of(dtype); }
};

/// Writable tensor: `count` elements of `dtype` at `data`. Does not own them.
struct TensorView {
  void* data = nullptr;       ///< the first element
  std::size_t count = 0;      ///< number of elements
  DType dtype = DType::kF32;  ///< their type
  Device device{};            ///< the memory that they are in

  /// \returns the size in bytes.
  constexpr std::size_t bytes() const { return count * size_of(dtype); }
  /// \returns the same tensor, read-only.
  constexpr operator ConstTensorView() const { return {data, count, dtype, device}; }
};

/// Views host memory as a tensor.
/// \returns the tensor, which refers to `data`.
/// \{
template <Element T>
requires(!std::is_const_v<T>) constexpr TensorView view(std::span<T> data) {
  return {data.data(), data.size(), dtype_of<T>, {}};
}
template <Element T>
constexpr ConstTensorView view(std::span<const T> data) {
  return {data.data(), data.size(), dtype_of<T>, {}};
}
/// \}

/// Views memory of a CUDA device as a tensor: `count` elements at `data`, on device `index`.
/// \returns the tensor, which refers to `data`.
/// \{
template <Element T>
requires(!std::is_const_v<T>) constexpr TensorView
    cuda_view(T* data, std::size_t count, int index = 0) {
  return {data, count, dtype_of<T>, {Device::Kind::kCuda, index}};
}
template <Element T>
constexpr ConstTensorView cuda_view(const T* data, std::size_t count, int index = 0) {
  return {data, count, dtype_of<T>, {Device::Kind::kCuda, index}};
}
/// \}

/// A stream of CUDA: a cudaStream_t or CUstream as it is, so that no header of CUDA is needed here.
///
/// Calls that take tensors in the memory of a CUDA device take the stream that makes them:
/// - The device waits for work that was queued on the stream before the call. The calling thread
///   waits only as far as the call itself does. Work on other streams is not waited for: if a
///   tensor is made there, let the stream wait for an event of the other stream.
/// - When the call returns, or for an asynchronous one the Work is complete, the results lie in the
///   tensors: whatever is queued afterwards, on whichever stream, and the host see them. Until then
///   nothing else may touch the tensors, work that is queued on the stream meanwhile included, but
///   for what is queued behind Work::wait(stream).
/// - Calls cannot be captured into a CUDA graph.
///
/// The stream must be of the device that the tensors lie on, and of its primary context, which is
/// that of CUDA's runtime. It must live until the call returns, asynchronous calls too.
struct CudaStream {
  /// Null, and cudaStreamLegacy: the default stream of the device. A program that is compiled for
  /// default streams per thread passes a stream of its own: cudaStreamPerThread would be another
  /// one in the threads of the library, and is refused.
  void* handle = nullptr;
};

}  // namespace elastic
