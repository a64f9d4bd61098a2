#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/handshake.hpp"
#include "base/unique_fd.hpp"
#include "elastic/results.hpp"

namespace elastic::runtime {

/// The job's server and secret, and this worker's identity in the job.
struct Identity {
  std::string address;  ///< of the rendezvous server
  std::string job;
  Secret secret{};
  std::string incarnation;
  WorkerId id = 0;
  int local_rank = 0;  ///< among the workers of this host, as the launcher said
  /// Generation of the last view of an earlier incarnation; none: this process was never a member.
  std::optional<std::uint64_t> last_generation = {};
  bool under_mpirun = false;
  /// See ServerLocation; kept while this worker may take part.
  std::shared_ptr<const UniqueFd> starter;
};

}  // namespace elastic::runtime
