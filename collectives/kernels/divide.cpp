#include <cmath>
#include <cstring>

#include "collectives/kernels/element_type.hpp"
#include "collectives/kernels/reduce.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectives/kernels/divide.cpp"
#include <hwy/foreach_target.h>

#include "collectives/kernels/elements_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace elastic::kernels::HWY_NAMESPACE {
namespace {

/// Divides whole vectors of D, from element `begin` on; returns where less than one is left.
template <typename T, class D>
HWY_INLINE std::size_t divide_vectors(D d, std::byte* data, std::size_t begin, std::size_t end,
                                      std::uint32_t divisor) {
  using W = hn::TFromD<D>;
  const std::size_t lanes = hn::Lanes(d);
  const W one = 1;
  const W by = static_cast<W>(divisor);
  const auto divisors = hn::Set(d, by);
  // A product with slightly more than the reciprocal is truncated to the right quotient, where W
  // has many more bits than T.
  const auto reciprocals = hn::Set(d, std::nextafter(one / by, one));
  for (; end - begin >= lanes; begin += lanes) {
    std::byte* const at = data + begin * sizeof(T);
    const auto dividends = load<T>(d, at);
    if constexpr (std::is_integral_v<T>) {
      store<T>(d, hn::Mul(dividends, reciprocals), at);
    } else {
      store<T>(d, one_nan(d, hn::Div(dividends, divisors)), at);
    }
  }
  return begin;
}

/// A double has no room for 64 bits, and Highway no way from 32 unsigned ones to it and back.
template <typename T>
void divide_each(std::byte* data, std::size_t elements, std::uint32_t divisor) {
  for (std::size_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(value), sizeof(value));
    value /= divisor;
    std::memcpy(data + i * sizeof(value), &value, sizeof(value));
  }
}

template <typename T>
void divide_all(std::byte* data, std::size_t elements, std::uint32_t divisor) {
  if (std::is_integral_v<T> && divisor == 1) return;
  if constexpr (std::is_unsigned_v<T> && sizeof(T) >= 4) {
    divide_each<T>(data, elements, divisor);
  } else {
    using W = std::conditional_t<sizeof(T) <= 2 || std::is_same_v<T, float>, float, double>;
    const std::size_t done = divide_vectors<T>(hn::ScalableTag<W>(), data, 0, elements, divisor);
    divide_vectors<T>(hn::CappedTag<W, 1>(), data, done, elements, divisor);
  }
}

/// No float has enough bits: the reciprocal is a fixed-point number of 64, and rounded up, which is
/// exact for magnitudes up to 2^63.
template <>
void divide_all<std::int64_t>(std::byte* data, std::size_t elements, std::uint32_t divisor) {
  if (divisor == 1) return;
  __extension__ using Product = unsigned __int128;
  const auto bits = static_cast<unsigned>(std::bit_width(divisor - 1));
  const auto reciprocal = static_cast<std::uint64_t>((Product{1} << (63 + bits)) / divisor + 1);
  for (std::size_t i = 0; i < elements; ++i) {
    std::uint64_t value;
    std::memcpy(&value, data + i * sizeof(value), sizeof(value));
    const std::uint64_t sign = 0 - (value >> 63);
    const Product scaled = Product{(value ^ sign) - sign} * reciprocal;
    value = ((static_cast<std::uint64_t>(scaled >> 64) >> (bits - 1)) ^ sign) - sign;
    std::memcpy(data + i * sizeof(value), &value, sizeof(value));
  }
}

}  // namespace

void divide_elements(DType dtype, std::byte* data, std::size_t elements, std::uint32_t divisor) {
  with_element_of(dtype,
                  [&](auto element) { divide_all<decltype(element)>(data, elements, divisor); });
}

}  // namespace elastic::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elastic::kernels {

HWY_EXPORT(divide_elements);

void divide(DType dtype, std::byte* data, std::size_t elements, std::uint32_t divisor) {
  HWY_DYNAMIC_DISPATCH(divide_elements)(dtype, data, elements, divisor);
}

}  // namespace elastic::kernels
#endif
