#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/backend_settings.hpp"
#include "base/config/environment.hpp"
#include "base/config/values.hpp"
#include "elastic/options.hpp"

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
  std::string_view backend = {};  ///< the only one that reads the field; empty: elastic itself
};

/// All variables. Any other name that begins with ELASTIC_ is an error.
const std::vector<Variable>& variables();

/// An environment variable of the library behind a backend, which the backend has to know, too.
struct LibraryVariable {
  std::string name;
  std::string_view backend;
  std::string_view meaning;
};
const std::vector<LibraryVariable>& library_variables();

/// The settings of `backend`: the fields of `options` that only it reads, and its library's
/// variables in `environment`.
BackendSettings settings_of(std::string_view backend, const Options& options,
                            const EnvironmentMap& environment);

}  // namespace elastic
