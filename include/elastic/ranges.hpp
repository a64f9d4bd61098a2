#pragma once

#include <ranges>
#include <span>
#include <type_traits>

#include "elastic/types.hpp"

namespace elastic {

namespace detail {

/// Says at compile time which element types there are.
template <typename T>
constexpr void require_element() {
  static_assert(Element<T>,
                "elastic: not an element type of collectives. There are elastic::float16, "
                "elastic::bfloat16, float, double, std::int8_t, std::uint8_t, std::int32_t and "
                "std::int64_t. In place of bool take std::uint8_t, with ReduceOp::kMin for all "
                "and kMax for any.");
}

/// Elements one behind the other: a vector, an array, a span of any extent.
template <typename R>
concept ContiguousRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R>;

template <ContiguousRange R>
using ElementOf = std::remove_cv_t<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/// What has a single value: a number.
template <typename T>
concept Number = std::is_arithmetic_v<T> || Element<T>;

template <ContiguousRange R>
constexpr std::span<const ElementOf<R>> input_of(const R& range) {
  require_element<ElementOf<R>>();
  return {std::ranges::data(range), std::ranges::size(range)};
}

/// The memory of a vector is the caller's; that of a span is whosever it was made of.
template <ContiguousRange R>
constexpr std::span<ElementOf<R>> output_of(R&& range) {
  require_element<ElementOf<R>>();
  static_assert(!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>,
                "elastic: the result goes where the input is, which is const here: give an output "
                "as well, or memory that is not const");
  static_assert(std::ranges::borrowed_range<R>,
                "elastic: this range is a temporary, and its elements go with it: give it a name");
  return {std::ranges::data(range), std::ranges::size(range)};
}

}  // namespace detail

}  // namespace elastic
