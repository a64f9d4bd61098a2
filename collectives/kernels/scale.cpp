#include "collectives/kernels/scale.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectives/kernels/scale.cpp"
#include <hwy/foreach_target.h>

#include "collectives/kernels/elements_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace elastic::kernels::HWY_NAMESPACE {
namespace {

/// Scales whole vectors of D, from element `begin` on; returns where less than one is left.
template <typename T, bool kDivides, class D>
HWY_INLINE std::size_t scale_vectors(D d, std::byte* into, const std::byte* from, std::size_t begin,
                                     std::size_t end, double factor, std::uint32_t divisor) {
  using W = hn::TFromD<D>;
  const auto factors = hn::Set(d, static_cast<W>(factor));
  const auto divisors = hn::Set(d, static_cast<W>(divisor));
  const std::size_t lanes = hn::Lanes(d);
  for (; end - begin >= lanes; begin += lanes) {
    auto values = load<T>(d, from + begin * sizeof(T));
    if constexpr (kDivides) values = hn::Div(values, divisors);
    store<T>(d, one_nan(d, hn::Mul(values, factors)), into + begin * sizeof(T));
  }
  return begin;
}

template <typename T, bool kDivides>
void scale_all(std::byte* into, const std::byte* from, std::size_t elements, double factor,
               std::uint32_t divisor) {
  using W = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const std::size_t done =
      scale_vectors<T, kDivides>(hn::ScalableTag<W>(), into, from, 0, elements, factor, divisor);
  scale_vectors<T, kDivides>(hn::CappedTag<W, 1>(), into, from, done, elements, factor, divisor);
}

template <typename T>
void scale_as(std::byte* into, const std::byte* from, std::size_t elements, double factor,
              std::uint32_t divisor) {
  const auto all = divisor == 1 ? scale_all<T, false> : scale_all<T, true>;
  all(into, from, elements, factor, divisor);
}

}  // namespace

void scale_elements(DType dtype, std::byte* into, const std::byte* from, std::size_t elements,
                    double factor, std::uint32_t divisor) {
  switch (dtype) {
    case DType::kF16:
      return scale_as<float16>(into, from, elements, factor, divisor);
    case DType::kBF16:
      return scale_as<bfloat16>(into, from, elements, factor, divisor);
    case DType::kF64:
      return scale_as<double>(into, from, elements, factor, divisor);
    default:
      return scale_as<float>(into, from, elements, factor, divisor);
  }
}

}  // namespace elastic::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elastic::kernels {

HWY_EXPORT(scale_elements);

void scale(DType dtype, std::byte* into, const std::byte* from, std::size_t elements, double factor,
           std::uint32_t divisor) {
  HWY_DYNAMIC_DISPATCH(scale_elements)(dtype, into, from, elements, factor, divisor);
}

}  // namespace elastic::kernels
#endif
