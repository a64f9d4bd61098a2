#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config/environment.hpp"
#include "base/status.hpp"
#include "benchmarks/rank_options.hpp"

namespace elastic::bench {

/// What the library will be running with, for the report: the environment overrides a program's
/// options, so the command line alone does not tell.
struct LibrarySettings {
  std::string backend;                ///< of the environment, or the default
  std::vector<std::string> backends;  ///< to measure: those of the command line, or that one
  std::vector<std::string> jobs;      ///< backend of each job: those of them that are not peers, or
                                      ///< that one, so that peers can meet
  std::string transport;
  std::optional<bool> encrypt;  ///< where the environment says
};

/// `transport` is empty where the command line leaves it open. kInvalidArgument when it says
/// another than the environment.
Result<LibrarySettings> library_settings(const std::string& transport,
                                         const EnvironmentMap& environment);

/// Likewise, with the backends. kInvalidArgument when the environment has a say in what several
/// backends need each: it would make their jobs one.
Result<LibrarySettings> library_settings(const RankOptions& options,
                                         const EnvironmentMap& environment);

}  // namespace elastic::bench
