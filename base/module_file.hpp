#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"

namespace elastic {

/// The head of the shared object of a loadable part: the variable `elastic_module`, the only
/// thing that it exports.
struct ModuleHead {
  /// Equals that of the loader, or else nothing more is read of the module: the two share
  /// classes.
  const char* abi;
  std::string (*describe)();  ///< for people: "Gloo 0.5.0"
  /// Of a module that loads the library that it is about by itself: does so, and says which it is.
  /// From `file`; where that is empty, as the dynamic linker finds it. Null: it is linked.
  Result<std::string> (*find_library)(const std::string& file) = nullptr;
};
inline constexpr const char* kModuleSymbol = "elastic_module";

/// The names of the modules that this build made.
const std::vector<std::string>& modules_built();

/// Loads the module `name` from `folder`; where that is empty, from where this library or program
/// lies. It stays loaded until the process ends. kUnavailable says that it was not built, which
/// files were looked for, or why the one found cannot be used.
Result<const ModuleHead*> load_module(const std::string& name, const std::string& folder);

}  // namespace elastic
