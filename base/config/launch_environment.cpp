#include "base/config/launch_environment.hpp"

#include "base/config/number_reader.hpp"
#include "base/config/rank_variables.hpp"
#include "base/config/slurm_step.hpp"

namespace elastic {

namespace {

using Launcher = LaunchEnvironment::Launcher;

std::string text_of(const EnvironmentMap& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

void read_ranks(NumberReader& numbers, const RankVariables& names, LaunchEnvironment& launch) {
  launch.rank = numbers.get(names.rank, 0, 0);
  launch.np = numbers.get(names.np, 1, 1);
  launch.local_rank = numbers.get(names.local_rank, 0, launch.rank);
  launch.local_np = numbers.get(names.local_np, 1, launch.np);
}

void read_open_mpi(NumberReader& numbers, const EnvironmentMap& environment,
                   LaunchEnvironment& launch) {
  launch.launcher = Launcher::kOpenMpi;
  read_ranks(numbers, kOpenMpiVariables, launch);
  // The name space alone may come again with mpirun's process id; its server's port will not soon.
  const std::string name_space = text_of(environment, "PMIX_NAMESPACE");
  if (!name_space.empty()) {
    launch.launch_key = name_space + " " + text_of(environment, "PMIX_SERVER_URI2");
  }
}

void read_mpich(NumberReader& numbers, LaunchEnvironment& launch) {
  launch.launcher = Launcher::kMpich;
  read_ranks(numbers, kMpichVariables, launch);
}

void read_slurm(NumberReader& numbers, const EnvironmentMap& environment,
                LaunchEnvironment& launch) {
  launch.launcher = Launcher::kSlurm;
  read_ranks(numbers, kSlurmVariables, launch);
  const int nodes = numbers.get({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}, 1, 1);
  if (nodes > 1) {
    launch.local_np = slurm_count_of(text_of(environment, "SLURM_STEP_TASKS_PER_NODE"),
                                     numbers.get({"SLURM_NODEID"}, 0, 0))
                          .value_or(1);
  }
  launch.slurm_serves_mpi = environment.contains("PMIX_RANK") || environment.contains("PMI_RANK");
  launch.launch_key = "slurm " + text_of(environment, "SLURM_CLUSTER_NAME") + " " +
                      text_of(environment, "SLURM_JOB_ID") + "." +
                      text_of(environment, "SLURM_STEP_ID") + " " +
                      text_of(environment, "SLURM_RESTART_COUNT");
}

void read_rank_variables(NumberReader& numbers, const EnvironmentMap& environment,
                         LaunchEnvironment& launch) {
  const bool given = !launch.rendezvous.empty();
  launch.launcher = given ? Launcher::kElasticrun : Launcher::kNone;
  read_ranks(numbers, kElasticrunVariables, launch);
  const bool ranked = environment.contains("ELASTIC_SLOT") || environment.contains("RANK");
  if (given && !ranked) launch.rank = -1;
}

constexpr const char* kStartRight =
    "start the workers with elasticrun, or start elastic-rendezvous where all of them reach it and "
    "set ELASTIC_RENDEZVOUS, ELASTIC_JOB and ELASTIC_SECRET_FILE for them, and "
    "ELASTIC_BIND=0.0.0.0 "
    "where they are on several hosts";

/// Variables that say that this process has others beside it, but not enough to find them.
Status check_alone(const EnvironmentMap& environment, int world_size) {
  const auto several = [](const std::string& what) {
    return Status(Code::kInvalidArgument, what +
                                              " but ELASTIC_RENDEZVOUS is not set: " + kStartRight +
                                              "; for a job of one worker set WORLD_SIZE=1");
  };
  if (world_size > 1) return several("WORLD_SIZE is " + std::to_string(world_size));
  if (environment.contains("WORLD_SIZE")) return {};
  for (const char* name : {"ELASTIC_JOB", "ELASTIC_SECRET_FILE"}) {
    if (!text_of(environment, name).empty()) return several(std::string(name) + " is set");
  }
  if (environment.contains("PMIX_RANK")) {
    return several("PMIX_RANK is " + text_of(environment, "PMIX_RANK") +
                   ", so a launcher started this process and maybe others,");
  }
  const std::string tasks = text_of(environment, "SLURM_NTASKS");
  if (!tasks.empty() && tasks != "1") {
    return Status(Code::kInvalidArgument,
                  "SLURM_NTASKS is " + tasks +
                      " but srun did not start this process: start the workers with srun; or " +
                      kStartRight + "; for a job of one worker set WORLD_SIZE=1");
  }
  return {};
}

Status several_hosts(const LaunchEnvironment& launch) {
  const bool by_srun = launch.launcher == Launcher::kSlurm;
  const std::string by_elasticrun =
      by_srun ? "start them by srun --ntasks-per-node=1 elasticrun PROGRAM, or " : "";
  return Status(Code::kInvalidArgument,
                "the workers were started on several hosts: " + by_elasticrun +
                    "start elastic-rendezvous where all of them reach it, and pass on "
                    "ELASTIC_RENDEZVOUS, ELASTIC_JOB, ELASTIC_SECRET_FILE and "
                    "ELASTIC_BIND=0.0.0.0 (" +
                    (by_srun ? "srun passes on what is exported)" : "mpirun -x)"));
}

Status check(const LaunchEnvironment& launch, const EnvironmentMap& environment) {
  // A worker that was added later has a slot beyond the world that was started.
  const bool spawned = environment.contains("ELASTIC_SLOT");
  if (!spawned && launch.rank >= launch.np) {
    return Status(Code::kInvalidArgument, "the launcher gave rank " + std::to_string(launch.rank) +
                                              " of " + std::to_string(launch.np) + " workers");
  }
  if (!launch.hosts_server()) return {};
  if (launch.launcher == Launcher::kNone) return check_alone(environment, launch.np);
  if (launch.local_np != launch.np) return several_hosts(launch);
  return {};
}

}  // namespace

Result<LaunchEnvironment> read_launch_environment(const EnvironmentMap& environment) {
  LaunchEnvironment launch;
  launch.rendezvous = text_of(environment, "ELASTIC_RENDEZVOUS");
  NumberReader numbers(environment);
  // elasticrun may itself have been started by mpirun or srun: the inner launcher counts. Hydra
  // and Open MPI may have used srun to start their own processes.
  const bool spawned = environment.contains("ELASTIC_SLOT");
  const bool hydra = environment.contains("MPI_LOCALRANKID");
  if (!spawned && environment.contains("OMPI_COMM_WORLD_RANK")) {
    read_open_mpi(numbers, environment, launch);
  } else if (!spawned && !hydra && is_slurm_task(environment)) {
    read_slurm(numbers, environment, launch);
  } else if (!spawned && environment.contains("PMI_RANK")) {
    read_mpich(numbers, launch);
  } else {
    read_rank_variables(numbers, environment, launch);
  }
  if (!numbers.status().ok()) return numbers.status();
  if (Status status = check(launch, environment); !status.ok()) return status;
  return launch;
}

}  // namespace elastic
