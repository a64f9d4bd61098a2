#pragma once

#include <map>
#include <string>

namespace elastic {

/// Environment variables by name.
using EnvironmentMap = std::map<std::string, std::string>;

/// A copy of this process's environment.
EnvironmentMap read_environment();

}  // namespace elastic
