#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"

namespace elastic {

/// The head of the shared object of a loadable part: the variable `elastic_module`, the only
/// thing that it exports.
struct ModuleHead {
  /// The name of the build. If it is not the loader's, nothing more of the module is read, because
  /// the two share classes.
  const char* abi;
  std::string (*describe)();  ///< for people: "Gloo 0.5.0"
  /// For a module that loads its library itself, such as NCCL: loads it from `file`, or if that is
  /// empty as the dynamic linker finds it, and returns its description. Null if the module is
  /// linked with its library.
  Result<std::string> (*find_library)(const std::string& file) = nullptr;
};
inline constexpr const char* kModuleSymbol = "elastic_module";

/// The names of the modules that this build made.
const std::vector<std::string>& modules_built();

/// Loads the module `name` from `folder`, or if that is empty from the folder of this library or
/// program. It stays loaded until the process ends. kUnavailable says that it was not built, which
/// files were looked for, or why the one found cannot be used.
Result<const ModuleHead*> load_module(const std::string& name, const std::string& folder);

}  // namespace elastic
