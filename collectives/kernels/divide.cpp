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
  const std::size_t lanes = hn::Lanes(d);
  const auto by = hn::Set(d, static_cast<hn::TFromD<D>>(divisor));
  for (; end - begin >= lanes; begin += lanes) {
    std::byte* const at = data + begin * sizeof(T);
    store<T>(d, one_nan(d, hn::Div(load<T>(d, at), by)), at);
  }
  return begin;
}

template <typename T>
void divide_all(std::byte* data, std::size_t elements, std::uint32_t divisor) {
  // A quotient of integers is exact when truncated, in floats that have more bits than dividends.
  using W = std::conditional_t<sizeof(T) <= 2 || std::is_same_v<T, float>, float, double>;
  const std::size_t done = divide_vectors<T>(hn::ScalableTag<W>(), data, 0, elements, divisor);
  divide_vectors<T>(hn::CappedTag<W, 1>(), data, done, elements, divisor);
}

/// No float has enough bits.
template <>
void divide_all<std::int64_t>(std::byte* data, std::size_t elements, std::uint32_t divisor) {
  for (std::byte* const end = data + elements * sizeof(std::int64_t); data != end;
       data += sizeof(std::int64_t)) {
    std::int64_t value;
    std::memcpy(&value, data, sizeof(value));
    value /= static_cast<std::int64_t>(divisor);
    std::memcpy(data, &value, sizeof(value));
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
