#pragma once

#include <cstdint>
#include <string>

#include "base/config/environment.hpp"
#include "base/status.hpp"

namespace elastic {

/// How this process was started, and what its launcher said of its place in the job.
struct LaunchEnvironment {
  enum class Launcher : std::uint8_t {
    kElasticrun,  ///< or anything that sets ELASTIC_RENDEZVOUS, with RANK or without
    kOpenMpi,
    kMpich,  ///< or another that uses Hydra
    kSlurm,  ///< srun
    kNone,   ///< started by hand: a job of one worker
  };
  Launcher launcher = Launcher::kNone;
  int rank = 0;  ///< wished for in the first view; -1: none
  int np = 1;    ///< workers that were started together
  int local_rank = 0;
  int local_np = 1;
  std::string rendezvous;  ///< the server's address; empty: rank 0 starts one on this machine
  /// Tells this launch from others on this machine, where the launcher has a name for it; otherwise
  /// the parent process does.
  std::string launch_key;

  /// srun started this process with what MPI_Init needs (--mpi=pmix or pmi2).
  bool slurm_serves_mpi = false;

  bool under_mpirun() const {
    return launcher == Launcher::kOpenMpi || launcher == Launcher::kMpich || slurm_serves_mpi;
  }
  bool hosts_server() const { return rendezvous.empty(); }
};

/// kInvalidArgument names a variable whose value is impossible, or says which is missing: several
/// workers that were started without a common server would each be a job of their own.
Result<LaunchEnvironment> read_launch_environment(const EnvironmentMap& environment);

}  // namespace elastic
