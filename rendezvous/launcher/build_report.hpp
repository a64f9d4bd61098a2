#pragma once

#include <string>

namespace elastic::launcher {

/// "elasticrun 0.1.0".
std::string version_line();

/// What `elasticrun --check-build` prints.
std::string build_report();

}  // namespace elastic::launcher
