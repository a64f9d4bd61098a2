#pragma once

#include <string>

namespace elastic::launcher {

/// "elasticrun 0.1.0".
std::string version_line();

/// What `elasticrun --check-build` prints: what was built, and which of the backends that jobs load
/// can be loaded, from `backend_path` or, where that is empty, from where jobs would.
std::string build_report(const std::string& backend_path);

}  // namespace elastic::launcher
