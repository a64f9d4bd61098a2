#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace elastic {

/// A choice, and the name that options and command lines have for it.
template <typename T>
struct Named {
  std::string_view name;
  T value;
};

/// The choice called `name`, if there is one.
template <typename T, std::size_t kCount>
constexpr std::optional<T> find_named(const std::array<Named<T>, kCount>& choices,
                                      std::string_view name) {
  for (const Named<T>& choice : choices) {
    if (choice.name == name) return choice.value;
  }
  return std::nullopt;
}

/// The name of `value` among the choices; empty where it is none of them.
template <typename T, std::size_t kCount>
constexpr std::string_view name_in(const std::array<Named<T>, kCount>& choices, T value) {
  for (const Named<T>& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return {};
}

}  // namespace elastic
