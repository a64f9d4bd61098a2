#pragma once

#include <string>

#include <gloo/config.h>

namespace elastic::collectives {

/// Name and version of the library: "Gloo 0.5.0".
inline std::string gloo_library() {
  return "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) +
         "." + std::to_string(GLOO_VERSION_PATCH);
}

}  // namespace elastic::collectives
