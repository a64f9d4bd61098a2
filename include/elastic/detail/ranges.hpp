#pragma once

#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include "elastic/types.hpp"

namespace elastic {

namespace detail {

/// Says at compile time which element types there are.
template <typename T>
constexpr void require_element() {
  static_assert(Element<T>,
                "elastic: not an element type of collectives. There are elastic::float16, "
                "elastic::bfloat16, float, double, bool, and the integers of 8, 16, 32 and 64 "
                "bits, with and without a sign.");
}

/// It has no elements in memory, only bits.
template <typename R>
inline constexpr bool kIsVectorOfBool = std::is_same_v<std::remove_cvref_t<R>, std::vector<bool>>;

template <typename R>
constexpr void require_elements() {
  static_assert(!kIsVectorOfBool<R>,
                "elastic: a std::vector<bool> packs its elements into bits and has none in memory: "
                "take a std::vector<std::uint8_t> with ReduceOp::kMax for \"or\" and kMin for "
                "\"and\", or an array of bool (std::array, std::unique_ptr<bool[]> and a span)");
}

/// Elements one behind the other: a vector, an array, a span of any extent. A vector of bool is
/// none, and let through to be refused with a message.
template <typename R>
concept ContiguousRange =
    (std::ranges::contiguous_range<R> && std::ranges::sized_range<R>) || kIsVectorOfBool<R>;

template <ContiguousRange R>
using ElementOf = std::ranges::range_value_t<R>;

/// A type with a single value: a number.
template <typename T>
concept Number = std::is_arithmetic_v<T> || Element<T>;

template <ContiguousRange R>
constexpr std::span<const ElementOf<R>> input_of(const R& range) {
  require_element<ElementOf<R>>();
  require_elements<R>();
  if constexpr (kIsVectorOfBool<R>) {
    return {};
  } else {
    return {std::ranges::data(range), std::ranges::size(range)};
  }
}

/// As `input_of`, for a call that returns before it has read the input.
template <ContiguousRange R>
constexpr std::span<const ElementOf<R>> lasting_input_of(R&& range) {
  static_assert(
      std::ranges::borrowed_range<R>,
      "elastic: this range is a temporary, and its elements go before they are read: give "
      "it a name");
  return input_of(range);
}

/// The memory that a result goes to. A span does not own its memory.
template <ContiguousRange R>
constexpr std::span<ElementOf<R>> output_of(R&& range) {
  require_element<ElementOf<R>>();
  static_assert(!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>,
                "elastic: the result goes where the input is, which is const here: give an output "
                "as well, or memory that is not const");
  static_assert(std::ranges::borrowed_range<R>,
                "elastic: this range is a temporary, and its elements go with it: give it a name");
  require_elements<R>();
  if constexpr (kIsVectorOfBool<R>) {
    return {};
  } else {
    return {std::ranges::data(range), std::ranges::size(range)};
  }
}

}  // namespace detail

}  // namespace elastic
