#pragma once

#include <string>

#include "base/config/environment.hpp"

namespace elastic::launcher {

/// "elasticrun 0.1.0".
std::string version_line();

/// The output of `elasticrun --check-build`: which backends were built, what of them can be loaded
/// here, where jobs with this environment would look for it, and what there is of CUDA.
std::string build_report(const EnvironmentMap& environment);

}  // namespace elastic::launcher
