#pragma once

#include <map>
#include <string>

namespace elastic {

/// The settings that only one backend reads: texts by the names of environment variables, which
/// base/config/variables lists. Variables that are not set may be missing.
using BackendSettings = std::map<std::string, std::string>;

}  // namespace elastic
