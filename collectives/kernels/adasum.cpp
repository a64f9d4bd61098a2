#include "collectives/kernels/adasum.hpp"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectives/kernels/adasum.cpp"
#include <hwy/foreach_target.h>

#include "collectives/kernels/elements_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace elastic::kernels::HWY_NAMESPACE {
namespace {

/// Elements that are computed at a time, whatever size the processor's vectors have. The compiler
/// makes vectors of loops over them.
constexpr std::size_t kAtATime = 8;
using Doubles = std::array<double, kAtATime>;

template <typename T>
HWY_INLINE Doubles widened(const std::byte* from) {
  std::array<std::conditional_t<kIsHalf<T>, float, T>, kAtATime> values;
  if constexpr (kIsHalf<T>) {
    const hn::CappedTag<float, kAtATime> d;
    for (std::size_t i = 0; i < kAtATime; i += hn::Lanes(d)) {
      hn::StoreU(load<T>(d, from + i * sizeof(T)), d, values.data() + i);
    }
  } else {
    std::memcpy(values.data(), from, sizeof values);
  }
  Doubles wide;
  for (std::size_t i = 0; i < kAtATime; ++i) wide[i] = static_cast<double>(values[i]);
  return wide;
}

template <typename T>
HWY_INLINE void put(const Doubles& wide, std::byte* into) {
  std::array<std::conditional_t<kIsHalf<T>, float, T>, kAtATime> values;
  using Value = typename decltype(values)::value_type;
  for (std::size_t i = 0; i < kAtATime; ++i) {
    const auto value = static_cast<Value>(wide[i]);
    values[i] = value != value ? std::numeric_limits<Value>::quiet_NaN() : value;
  }
  if constexpr (kIsHalf<T>) {
    const hn::CappedTag<float, kAtATime> d;
    for (std::size_t i = 0; i < kAtATime; i += hn::Lanes(d)) {
      store<T>(d, hn::LoadU(d, values.data() + i), into + i * sizeof(T));
    }
  } else {
    std::memcpy(into, values.data(), sizeof values);
  }
}

/// Fewer than kAtATime elements, with zeros after them.
template <typename T>
struct Rest {
  std::array<std::byte, kAtATime * sizeof(T)> bytes{};
  Rest(const std::byte* from, std::size_t elements) {
    std::memcpy(bytes.data(), from, elements * sizeof(T));
  }
};

double total(const Doubles& sums) {
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <typename T>
DotProducts products_of(const std::byte* a, const std::byte* b, std::size_t elements) {
  Doubles ab{};
  Doubles aa{};
  Doubles bb{};
  const auto add = [&](const std::byte* from_a, const std::byte* from_b) HWY_ATTR {
    const Doubles x = widened<T>(from_a);
    const Doubles y = widened<T>(from_b);
    for (std::size_t i = 0; i < kAtATime; ++i) {
      ab[i] += x[i] * y[i];
      aa[i] += x[i] * x[i];
      bb[i] += y[i] * y[i];
    }
  };
  const std::size_t whole = elements / kAtATime * kAtATime;
  for (std::size_t i = 0; i < whole; i += kAtATime) add(a + i * sizeof(T), b + i * sizeof(T));
  if (whole < elements) {
    const Rest<T> rest_a(a + whole * sizeof(T), elements - whole);
    const Rest<T> rest_b(b + whole * sizeof(T), elements - whole);
    add(rest_a.bytes.data(), rest_b.bytes.data());
  }
  return {total(ab), total(aa), total(bb)};
}

template <typename T>
void sum_of(std::byte* into, const std::byte* a, double weight_a, const std::byte* b,
            double weight_b, std::size_t elements) {
  const auto combine = [&](const std::byte* from_a, const std::byte* from_b, std::byte* to)
                           HWY_ATTR {
                             const Doubles x = widened<T>(from_a);
                             const Doubles y = widened<T>(from_b);
                             Doubles sum;
                             for (std::size_t i = 0; i < kAtATime; ++i)
                               sum[i] = weight_a * x[i] + weight_b * y[i];
                             put<T>(sum, to);
                           };
  const std::size_t whole = elements / kAtATime * kAtATime;
  for (std::size_t i = 0; i < whole; i += kAtATime) {
    combine(a + i * sizeof(T), b + i * sizeof(T), into + i * sizeof(T));
  }
  if (whole < elements) {
    const Rest<T> rest_a(a + whole * sizeof(T), elements - whole);
    Rest<T> rest_b(b + whole * sizeof(T), elements - whole);
    combine(rest_a.bytes.data(), rest_b.bytes.data(), rest_b.bytes.data());
    std::memcpy(into + whole * sizeof(T), rest_b.bytes.data(), (elements - whole) * sizeof(T));
  }
}

}  // namespace

DotProducts dot_products_of(DType dtype, const std::byte* a, const std::byte* b,
                            std::size_t elements) {
  switch (dtype) {
    case DType::kF16:
      return products_of<float16>(a, b, elements);
    case DType::kBF16:
      return products_of<bfloat16>(a, b, elements);
    case DType::kF64:
      return products_of<double>(a, b, elements);
    default:
      return products_of<float>(a, b, elements);
  }
}

void weighted_sum_of(DType dtype, std::byte* into, const std::byte* a, double weight_a,
                     const std::byte* b, double weight_b, std::size_t elements) {
  switch (dtype) {
    case DType::kF16:
      return sum_of<float16>(into, a, weight_a, b, weight_b, elements);
    case DType::kBF16:
      return sum_of<bfloat16>(into, a, weight_a, b, weight_b, elements);
    case DType::kF64:
      return sum_of<double>(into, a, weight_a, b, weight_b, elements);
    default:
      return sum_of<float>(into, a, weight_a, b, weight_b, elements);
  }
}

}  // namespace elastic::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elastic::kernels {

HWY_EXPORT(dot_products_of);
HWY_EXPORT(weighted_sum_of);

DotProducts dot_products(DType dtype, const std::byte* a, const std::byte* b,
                         std::size_t elements) {
  return HWY_DYNAMIC_DISPATCH(dot_products_of)(dtype, a, b, elements);
}

double adasum_weight(double ab, double aa) {
  return aa == 0 ? 1 : 1 - ab / (2 * aa);
}

void weighted_sum(DType dtype, std::byte* into, const std::byte* a, double weight_a,
                  const std::byte* b, double weight_b, std::size_t elements) {
  HWY_DYNAMIC_DISPATCH(weighted_sum_of)(dtype, into, a, weight_a, b, weight_b, elements);
}

}  // namespace elastic::kernels
#endif
