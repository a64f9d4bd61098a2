#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/values.hpp"

namespace elastic {

/// An environment variable that sets a field of Options. Its default is that of the field.
struct Variable {
  /// kUser: the user or a job script. kLauncher: elasticrun, for the workers that it starts.
  enum class SetBy : std::uint8_t { kUser, kLauncher };

  std::string name;
  std::string_view field;  ///< of Options, for messages
  SetBy set_by = SetBy::kUser;
  std::string_view meaning;  ///< for documents; options.hpp says more
  Values values;
};

/// All variables. Any other name that begins with ELASTIC_ is an error.
const std::vector<Variable>& variables();

}  // namespace elastic
