#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "elastic/options.hpp"

namespace elastic {

/// The values that a variable may have, and the field of Options that it sets.
struct Values {
  std::string allowed;  ///< completes "must be ..."
  std::string unit;     ///< of the number; empty where there is none
  /// Sets the field, and returns true, if `text` is allowed.
  std::function<bool(Options&, const std::string& text)> set;
  /// The field as text. `set` refuses it only if code gave the field an impossible value.
  std::function<std::string(const Options&)> get;
};

/// Any text; `form` says what it is, for documents.
Values any_text(std::string Options::*field, std::string form);
/// One of kBackendNames.
Values backend_name(std::string Options::*field);
/// One of kCompressionForms.
Values compression_form(std::string Options::*field);
/// As NetworkChoice, or nothing.
Values network_list(std::string Options::*field);
/// As PortRange, or nothing.
Values port_range(std::string Options::*field);
Values whole_number(int Options::*field, int least, int most, std::string unit = {});
/// 0 or 1.
Values flag(bool Options::*field);
/// A multiple of `multiple`, with a suffix K, M or G or without.
Values byte_count(std::size_t Options::*field, std::size_t least, std::size_t most,
                  std::size_t multiple);
/// From `least` to a day.
Values milliseconds(std::chrono::milliseconds Options::*field, std::int64_t least);

/// "one of a b c".
std::string one_of(std::span<const std::string_view> names);

/// One of the names of `choices`.
template <typename T, std::size_t kCount>
Values choice(T Options::*field, const std::array<Named<T>, kCount>& choices) {
  std::vector<std::string_view> names;
  for (const Named<T>& each : choices) names.push_back(each.name);
  return {.allowed = one_of(names),
          .unit = {},
          .set =
              [=](Options& options, const std::string& text) {
                const std::optional<T> chosen = find_named(choices, text);
                if (chosen) options.*field = *chosen;
                return chosen.has_value();
              },
          .get =
              [=](const Options& options) {
                const std::string_view name = name_in(choices, options.*field);
                return name.empty() ? std::to_string(static_cast<int>(options.*field))
                                    : std::string(name);
              }};
}

}  // namespace elastic
