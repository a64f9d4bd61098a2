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
  /// In the process that started the server: the server stops waiting for its first worker when
  /// this is closed. Null in other processes.
  std::shared_ptr<const UniqueFd> starter;
};

/// Finds or starts the server of workers that were given none: under mpirun on one machine, or
/// started by hand.
///
/// Rank 0 starts elastic-rendezvous, and writes a record with its address to this user's private
/// folder. The other ranks wait for that record until `deadline`; the identity of the server's
/// process distinguishes it from a record of an earlier job. The server outlives rank 0, and ends
/// when the workers are gone, or when none has come yet and rank 0 has given up
/// (`ServerLocation::starter`). Each `job`, empty or not, has a server of its own. `encrypt`
/// applies to a server that is started. Blocks. Thread-safe.
Result<ServerLocation> find_or_start_server(const LaunchEnvironment& launch, const std::string& job,
                                            const EnvironmentMap& environment, bool encrypt,
                                            TimePoint deadline);

}  // namespace elastic::runtime
