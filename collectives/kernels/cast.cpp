#include "collectives/kernels/cast.hpp"

#include <cstring>
#include <limits>

namespace elastic::kernels {
namespace {

template <typename T>
T element_at(const std::byte* elements, std::size_t index) {
  T element;
  std::memcpy(&element, elements + index * sizeof(T), sizeof(T));
  return element;
}

template <typename T>
void put(std::byte* elements, std::size_t index, T element) {
  std::memcpy(elements + index * sizeof(T), &element, sizeof(T));
}

/// A computed NaN becomes the one NaN that all kernels leave.
template <typename Wide>
Wide one_nan(Wide value) {
  return value != value ? std::numeric_limits<Wide>::quiet_NaN() : value;
}

template <typename Wide, typename Half>
void cast_each(const std::byte* from, std::size_t count, double factor, std::byte* to) {
  const auto by = static_cast<Wide>(factor);
  for (std::size_t i = 0; i < count; ++i) {
    Wide value = element_at<Wide>(from, i);
    if (by != 1) value = one_nan(value * by);
    put(to, i, Half(static_cast<float>(value)));
  }
}

template <typename Half, typename Wide>
void widen_each(const std::byte* from, std::size_t count, double factor, std::uint32_t divisor,
                std::byte* to) {
  const auto by = static_cast<Wide>(factor);
  const auto divided_by = static_cast<Wide>(divisor);
  for (std::size_t i = 0; i < count; ++i) {
    auto value = static_cast<Wide>(static_cast<float>(element_at<Half>(from, i)));
    if (by != 1) value *= by;
    if (divisor != 1) value /= divided_by;
    if (by != 1 || divisor != 1) value = one_nan(value);
    put(to, i, value);
  }
}

template <typename Wide>
auto cast_to(DType half) {
  return half == DType::kF16 ? &cast_each<Wide, float16> : &cast_each<Wide, bfloat16>;
}

template <typename Wide>
auto widen_from(DType half) {
  return half == DType::kF16 ? &widen_each<float16, Wide> : &widen_each<bfloat16, Wide>;
}

}  // namespace

void cast(DType from, const std::byte* elements, std::size_t count, double factor, DType half,
          std::byte* halves) {
  const auto all = from == DType::kF64 ? cast_to<double>(half) : cast_to<float>(half);
  all(elements, count, factor, halves);
}

void widen(DType half, const std::byte* halves, std::size_t count, double factor,
           std::uint32_t divisor, DType to, std::byte* elements) {
  const auto all = to == DType::kF64 ? widen_from<double>(half) : widen_from<float>(half);
  all(halves, count, factor, divisor, elements);
}

}  // namespace elastic::kernels
