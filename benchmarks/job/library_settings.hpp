#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config/environment.hpp"
#include "base/status.hpp"
#include "benchmarks/job/rank_options.hpp"

namespace elastic::bench {

/// The settings in force for the library, for the report. The command line alone does not determine
/// them, because the environment overrides a program's options.
struct LibrarySettings {
  std::string backend;                ///< of the environment, or the default
  std::vector<std::string> backends;  ///< to measure: those of the command line, or `backend`
  std::vector<std::string> jobs;  ///< the backend of each job: `backends` without peers; if there
                                  ///< are only peers, `backend`, for their barriers
  std::string transport;
  std::optional<bool> encrypt;  ///< of the environment; empty if that leaves it open
};

/// `transport` is that of the command line, or empty. kInvalidArgument if the environment has
/// another.
Result<LibrarySettings> library_settings(const std::string& transport,
                                         const EnvironmentMap& environment);

/// The same with the backends of `options`. kInvalidArgument if the environment sets, for several
/// backends, a value that each needs for itself: their jobs would be one.
Result<LibrarySettings> library_settings(const RankOptions& options,
                                         const EnvironmentMap& environment);

}  // namespace elastic::bench
