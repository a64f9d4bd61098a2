#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/config/environment.hpp"
#include "base/config/launch_environment.hpp"
#include "base/handshake.hpp"
#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::runtime {

struct ServerLocation {
  std::string address;
  std::string job;
  Secret secret{};
  /// In the process that started the server: once it is closed, the server waits for no first
  /// worker any more. Null elsewhere.
  std::shared_ptr<const UniqueFd> starter;
};

/// For workers that nobody gave a server: under mpirun on one machine, or started by hand. Rank 0
/// starts elastic-rendezvous, which outlives it and ends by itself when the workers are gone, or
/// none is there yet and rank 0 has given up (`ServerLocation::starter`); and leaves word where it
/// is in this user's private folder; the others wait for that until `deadline`. What an earlier job
/// left there is told from it by its process. Each `job`, empty or not, has a server of its own.
/// `encrypt`: for the server that is started. Blocks; any thread.
Result<ServerLocation> find_or_start_server(const LaunchEnvironment& launch, const std::string& job,
                                            const EnvironmentMap& environment, bool encrypt,
                                            TimePoint deadline);

}  // namespace elastic::runtime
