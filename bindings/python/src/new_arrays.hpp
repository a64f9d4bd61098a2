#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace elastic::python {

namespace nb = nanobind;

template <typename T>
using NewArray = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

/// A new array of NumPy with a copy of `values`. Indices become int64.
template <typename T>
auto new_array(std::span<const T> values) {
  using Element =
      std::conditional_t<std::is_same_v<T, std::size_t>, std::int64_t, std::remove_cv_t<T>>;
  static_assert(sizeof(Element) == sizeof(T));
  auto* const copy = new Element[values.size() + 1];
  std::copy(values.begin(), values.end(), copy);
  const nb::capsule owner(copy,
                          [](void* memory) noexcept { delete[] static_cast<Element*>(memory); });
  return NewArray<Element>(copy, {values.size()}, owner);
}

}  // namespace elastic::python
