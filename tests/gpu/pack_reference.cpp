#include "tests/gpu/pack_reference.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "collectives/kernels/element_type.hpp"

namespace elastic::gpu {

namespace {

using kernels::device::Direction;
using kernels::device::Scale;

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

/// Products and quotients of binary32 are exact in double precision, or rounded so that rounding
/// again gives what rounding once does.
template <typename Wide>
double scaled(double value, const Scale& scale) {
  const auto rounded = [](double exact) { return static_cast<double>(static_cast<Wide>(exact)); };
  if (scale.factor != 1) value = rounded(value * rounded(scale.factor));
  if (scale.divisor != 1) value = rounded(value / rounded(scale.divisor));
  return value;
}

template <typename To, typename Wide>
To stored(Wide value) {
  if constexpr (kIsHalf<To>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
To moved(From from, const Scale& scale) {
  if constexpr (std::is_unsigned_v<From>) {
    return static_cast<To>(std::uint64_t{from} / scale.divisor);
  } else if constexpr (std::is_integral_v<From>) {
    return static_cast<To>(static_cast<std::int64_t>(from) / std::int64_t{scale.divisor});
  } else {
    constexpr bool kInDouble = std::is_same_v<From, double> || std::is_same_v<To, double>;
    using Wide = std::conditional_t<kInDouble, double, float>;
    if constexpr (std::is_same_v<From, To>) {
      if (scale.is_one()) return from;
    }
    using Plain = std::conditional_t<kIsHalf<From>, float, From>;
    const Plain value = static_cast<Plain>(from);
    if (scale.is_one()) return stored<To>(static_cast<Wide>(value));
    const double result = scaled<Wide>(static_cast<double>(value), scale);
    if (std::isnan(result)) return stored<To>(std::numeric_limits<Wide>::quiet_NaN());
    return stored<To>(static_cast<Wide>(result));
  }
}

template <typename From, typename To>
void move_each(const std::byte* from, std::byte* to, std::size_t count, const Scale& scale) {
  for (std::size_t i = 0; i < count; ++i) {
    From element;
    std::memcpy(&element, from + i * sizeof(From), sizeof(From));
    const To result = moved<From, To>(element, scale);
    std::memcpy(to + i * sizeof(To), &result, sizeof(To));
  }
}

/// Both types are those of a case; others are never asked for.
template <typename Tensor, typename Bucket>
void move_tensor(Direction direction, std::byte* tensor, std::byte* bucket, std::size_t count,
                 const Scale& scale) {
  if constexpr (std::is_integral_v<Tensor> != std::is_integral_v<Bucket> ||
                (std::is_integral_v<Tensor> && !std::is_same_v<Tensor, Bucket>)) {
    std::abort();
  } else if (direction == Direction::kPack) {
    move_each<Tensor, Bucket>(tensor, bucket, count, scale);
  } else {
    move_each<Bucket, Tensor>(bucket, tensor, count, scale);
  }
}

}  // namespace

void pack_on_host(const PackCase& one, std::vector<std::byte>& tensors,
                  std::vector<std::byte>& bucket) {
  std::byte* in_bucket = bucket.data() + one.bucket_offset;
  for (const PackCase::Place& place : one.tensors) {
    std::byte* const tensor = tensors.data() + place.offset;
    kernels::with_element_of(one.tensor_dtype, [&](auto of_tensor) {
      kernels::with_element_of(one.bucket_dtype, [&](auto of_bucket) {
        move_tensor<decltype(of_tensor), decltype(of_bucket)>(one.direction, tensor, in_bucket,
                                                              place.count, one.scale);
      });
    });
    in_bucket += place.count * size_of(one.bucket_dtype);
  }
}

}  // namespace elastic::gpu
