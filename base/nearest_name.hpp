#pragma once

#include <span>
#include <string>
#include <string_view>

namespace elastic {

/// The name of `known`, which is not empty, that is most like `name`: for "did you mean". A longer
/// one that begins with `name` is nearest, then one that `name` abbreviates.
const std::string& nearest_name(std::string_view name, std::span<const std::string> known);

/// Whether `name` may be `known`, cut short or with a few wrong letters.
bool is_near(std::string_view name, std::string_view known);

}  // namespace elastic
