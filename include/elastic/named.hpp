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

}  // namespace elastic
