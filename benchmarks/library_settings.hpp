#pragma once

#include <optional>
#include <string>

#include "base/status.hpp"
#include "config/environment.hpp"

namespace elastic::bench {

/// What the library will be running with, for the report: the environment overrides a program's
/// options, so the command line alone does not tell.
struct LibrarySettings {
  std::string backend;
  std::string transport;
  std::optional<bool> encrypt;  ///< where the environment says
};

/// `transport` is empty where the command line leaves it open. kInvalidArgument when it says
/// another than the environment.
Result<LibrarySettings> library_settings(const std::string& transport,
                                         const EnvironmentMap& environment);

}  // namespace elastic::bench
