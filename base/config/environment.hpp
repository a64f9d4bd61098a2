#pragma once

#include <map>
#include <string>

namespace elastic {

/// Environment variables by name.
using EnvironmentMap = std::map<std::string, std::string>;

/// A copy of this process's environment.
EnvironmentMap read_environment();

/// Whether ELASTIC_ENCRYPT asks for encryption; for launchers, which pass that on to the server.
inline bool wants_encryption(const EnvironmentMap& environment) {
  const auto found = environment.find("ELASTIC_ENCRYPT");
  return found != environment.end() && found->second == "1";
}

}  // namespace elastic
