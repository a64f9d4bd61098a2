#include "collectives/kernels/narrow.hpp"

#include <cstring>
#include <limits>
#include <type_traits>

#include "collectives/kernels/element_type.hpp"

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

/// What is computed and is no number is the one NaN that all kernels leave.
template <typename Wide>
Wide one_nan(Wide value) {
  return value != value ? std::numeric_limits<Wide>::quiet_NaN() : value;
}

template <typename Wide, typename Half>
void narrow_each(const std::byte* from, std::size_t count, double factor, std::byte* to) {
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

template <typename Call>
void with_types(DType wide, DType half, const Call& call) {
  with_element_of(wide, [&](auto of_wide) {
    with_element_of(half, [&](auto of_half) {
      if constexpr (std::is_floating_point_v<decltype(of_wide)> &&
                    std::is_class_v<decltype(of_half)>) {
        call(of_wide, of_half);
      }
    });
  });
}

}  // namespace

void narrow(DType from, const std::byte* elements, std::size_t count, double factor, DType half,
            std::byte* halves) {
  with_types(from, half, [&](auto of_wide, auto of_half) {
    narrow_each<decltype(of_wide), decltype(of_half)>(elements, count, factor, halves);
  });
}

void widen(DType half, const std::byte* halves, std::size_t count, double factor,
           std::uint32_t divisor, DType to, std::byte* elements) {
  with_types(to, half, [&](auto of_wide, auto of_half) {
    widen_each<decltype(of_half), decltype(of_wide)>(halves, count, factor, divisor, elements);
  });
}

}  // namespace elastic::kernels
