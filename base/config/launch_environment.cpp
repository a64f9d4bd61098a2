#include "base/config/launch_environment.hpp"

#include <charconv>

#include "base/config/rank_variables.hpp"

namespace elastic {

namespace {

using Launcher = LaunchEnvironment::Launcher;

std::string text_of(const EnvironmentMap& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

/// Reads numbers until the first that is wrong, which it remembers.
class Numbers {
 public:
  explicit Numbers(const EnvironmentMap& environment) : environment_(environment) {}

  /// The first of `names` that is set; `otherwise` if none is.
  int get(const RankVariables::Names& names, int least, int otherwise) {
    for (const char* name : names) {
      if (name == nullptr) continue;
      const auto found = environment_.find(name);
      if (found == environment_.end()) continue;
      const std::string& text = found->second;
      int value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error == std::errc() && end == text.data() + text.size() && value >= least) return value;
      if (status_.ok()) {
        status_ = Status(Code::kInvalidArgument,
                         std::string("environment variable ") + name + " is '" + text +
                             "': must be a whole number of at least " + std::to_string(least));
      }
      return otherwise;
    }
    return otherwise;
  }
  const Status& status() const { return status_; }

 private:
  const EnvironmentMap& environment_;
  Status status_;
};

void read_ranks(Numbers& numbers, const RankVariables& names, LaunchEnvironment& launch) {
  launch.rank = numbers.get(names.rank, 0, 0);
  launch.np = numbers.get(names.np, 1, 1);
  launch.local_rank = numbers.get(names.local_rank, 0, launch.rank);
  launch.local_np = numbers.get(names.local_np, 1, launch.np);
}

void read_open_mpi(Numbers& numbers, const EnvironmentMap& environment, LaunchEnvironment& launch) {
  launch.launcher = Launcher::kOpenMpi;
  read_ranks(numbers, kOpenMpiVariables, launch);
  // The name space alone may come again with mpirun's process id; its server's port will not soon.
  const std::string name_space = text_of(environment, "PMIX_NAMESPACE");
  if (!name_space.empty()) {
    launch.launch_key = name_space + " " + text_of(environment, "PMIX_SERVER_URI2");
  }
}

void read_mpich(Numbers& numbers, LaunchEnvironment& launch) {
  launch.launcher = Launcher::kMpich;
  read_ranks(numbers, kMpichVariables, launch);
}

/// The tasks of this process's node, from what Slurm says of all nodes, such as "2(x3),1".
/// `otherwise` where that cannot be read.
int slurm_local_tasks(const std::string& tasks_per_node, int node, int otherwise) {
  const char* at = tasks_per_node.data();
  const char* const end = at + tasks_per_node.size();
  while (at < end) {
    int tasks = 0;
    auto read = std::from_chars(at, end, tasks);
    if (read.ec != std::errc()) return otherwise;
    int nodes = 1;
    if (end - read.ptr > 2 && read.ptr[0] == '(' && read.ptr[1] == 'x') {
      read = std::from_chars(read.ptr + 2, end, nodes);
      if (read.ec != std::errc() || read.ptr == end || *read.ptr != ')') return otherwise;
      ++read.ptr;
    }
    if (node < nodes) return tasks;
    node -= nodes;
    if (read.ptr == end || *read.ptr != ',') return otherwise;
    at = read.ptr + 1;
  }
  return otherwise;
}

void read_slurm(Numbers& numbers, const EnvironmentMap& environment, LaunchEnvironment& launch) {
  launch.launcher = Launcher::kSlurm;
  read_ranks(numbers, kSlurmVariables, launch);
  const int nodes = numbers.get({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}, 1, 1);
  if (nodes > 1) {
    launch.local_np = slurm_local_tasks(text_of(environment, "SLURM_STEP_TASKS_PER_NODE"),
                                        numbers.get({"SLURM_NODEID"}, 0, 0), 1);
  }
  launch.slurm_serves_mpi = environment.contains("PMIX_RANK") || environment.contains("PMI_RANK");
  launch.launch_key = "slurm " + text_of(environment, "SLURM_CLUSTER_NAME") + " " +
                      text_of(environment, "SLURM_JOB_ID") + "." +
                      text_of(environment, "SLURM_STEP_ID") + " " +
                      text_of(environment, "SLURM_RESTART_COUNT");
}

void read_rank_variables(Numbers& numbers, const EnvironmentMap& environment,
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

Status check(const LaunchEnvironment& launch, const EnvironmentMap& environment) {
  // A worker that was added later has a slot beyond the world that was started.
  const bool spawned = environment.contains("ELASTIC_SLOT");
  if (!spawned && launch.rank >= launch.np) {
    return Status(Code::kInvalidArgument, "the launcher gave rank " + std::to_string(launch.rank) +
                                              " of " + std::to_string(launch.np) + " workers");
  }
  if (!launch.hosts_server()) return {};
  if (launch.launcher == Launcher::kNone) return check_alone(environment, launch.np);
  if (launch.local_np != launch.np) {
    return Status(Code::kInvalidArgument,
                  "the workers were started on several hosts: start elastic-rendezvous where all "
                  "of them reach it, and pass on ELASTIC_RENDEZVOUS, ELASTIC_JOB, "
                  "ELASTIC_SECRET_FILE and ELASTIC_BIND=0.0.0.0 (mpirun -x; srun passes on what is "
                  "exported)");
  }
  return {};
}

/// A process of a step of srun's. In a batch script there is no step. Where RANK is set an inner
/// launcher has set it, such as torchrun's.
bool under_srun(const EnvironmentMap& environment) {
  return environment.contains("SLURM_PROCID") && environment.contains("SLURM_STEP_ID") &&
         !environment.contains("RANK");
}

}  // namespace

Result<LaunchEnvironment> read_launch_environment(const EnvironmentMap& environment) {
  LaunchEnvironment launch;
  launch.rendezvous = text_of(environment, "ELASTIC_RENDEZVOUS");
  Numbers numbers(environment);
  // elasticrun may itself have been started by mpirun or srun: the inner launcher counts. Hydra
  // and Open MPI may have used srun to start their own processes.
  const bool spawned = environment.contains("ELASTIC_SLOT");
  const bool hydra = environment.contains("MPI_LOCALRANKID");
  if (!spawned && environment.contains("OMPI_COMM_WORLD_RANK")) {
    read_open_mpi(numbers, environment, launch);
  } else if (!spawned && !hydra && under_srun(environment)) {
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
