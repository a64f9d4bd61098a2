#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace elastic {

/// A choice, and its name in options and on command lines.
template <typename T>
struct Named {
  std::string_view name;  ///< in small letters
  T value;                ///< the choice
};

/// Finds a choice by its name, in a table such as kTransports.
/// \returns the choice called `name`, or nothing if there is none.
template <typename T, std::size_t kCount>
constexpr std::optional<T> find_named(const std::array<Named<T>, kCount>& choices,
                                      std::string_view name) {
  for (const Named<T>& choice : choices) {
    if (choice.name == name) return choice.value;
  }
  return std::nullopt;
}

/// Finds the name of a choice.
/// \returns the name of `value` among the choices; empty if it is none of them.
template <typename T, std::size_t kCount>
constexpr std::string_view name_in(const std::array<Named<T>, kCount>& choices, T value) {
  for (const Named<T>& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return {};
}

}  // namespace elastic
