#include "config/launch_environment.hpp"

#include <charconv>
#include <initializer_list>

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
  int get(std::initializer_list<const char*> names, int least, int otherwise) {
    for (const char* name : names) {
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

void read_open_mpi(Numbers& numbers, const EnvironmentMap& environment, LaunchEnvironment& launch) {
  launch.launcher = Launcher::kOpenMpi;
  launch.rank = numbers.get({"OMPI_COMM_WORLD_RANK"}, 0, 0);
  launch.np = numbers.get({"OMPI_COMM_WORLD_SIZE"}, 1, 1);
  launch.local_rank = numbers.get({"OMPI_COMM_WORLD_LOCAL_RANK"}, 0, launch.rank);
  launch.local_np = numbers.get({"OMPI_COMM_WORLD_LOCAL_SIZE"}, 1, launch.np);
  // The name space alone may come again with mpirun's process id; its server's port will not soon.
  const std::string name_space = text_of(environment, "PMIX_NAMESPACE");
  if (!name_space.empty()) {
    launch.launch_key = name_space + " " + text_of(environment, "PMIX_SERVER_URI2");
  }
}

void read_mpich(Numbers& numbers, LaunchEnvironment& launch) {
  launch.launcher = Launcher::kMpich;
  launch.rank = numbers.get({"PMI_RANK"}, 0, 0);
  launch.np = numbers.get({"PMI_SIZE"}, 1, 1);
  launch.local_rank = numbers.get({"MPI_LOCALRANKID"}, 0, launch.rank);
  launch.local_np = numbers.get({"MPI_LOCALNRANKS"}, 1, launch.np);
}

void read_rank_variables(Numbers& numbers, const EnvironmentMap& environment,
                         LaunchEnvironment& launch) {
  const bool given = !launch.rendezvous.empty();
  launch.launcher = given ? Launcher::kElasticrun : Launcher::kNone;
  const bool ranked = environment.contains("ELASTIC_SLOT") || environment.contains("RANK");
  launch.rank = numbers.get({"ELASTIC_SLOT", "RANK"}, 0, given && !ranked ? -1 : 0);
  launch.np = numbers.get({"WORLD_SIZE"}, 1, 1);
  launch.local_rank = numbers.get({"LOCAL_RANK"}, 0, launch.rank < 0 ? 0 : launch.rank);
  launch.local_np = numbers.get({"LOCAL_WORLD_SIZE"}, 1, launch.np);
}

Status check(const LaunchEnvironment& launch, bool spawned) {
  // A worker that was added later has a slot beyond the world that was started.
  if (!spawned && launch.rank >= launch.np) {
    return Status(Code::kInvalidArgument, "the launcher gave rank " + std::to_string(launch.rank) +
                                              " of " + std::to_string(launch.np) + " workers");
  }
  if (!launch.hosts_server()) return {};
  if (launch.launcher == Launcher::kNone && launch.np > 1) {
    return Status(Code::kInvalidArgument,
                  "WORLD_SIZE is " + std::to_string(launch.np) +
                      " but ELASTIC_RENDEZVOUS is not set: start the workers with elasticrun, or "
                      "start elastic-rendezvous and set ELASTIC_RENDEZVOUS, ELASTIC_JOB and "
                      "ELASTIC_SECRET_FILE");
  }
  if (launch.local_np != launch.np) {
    return Status(
        Code::kInvalidArgument,
        "mpirun started workers on several hosts: start elastic-rendezvous where all reach "
        "it and pass ELASTIC_RENDEZVOUS, ELASTIC_JOB and ELASTIC_SECRET_FILE on (mpirun "
        "-x)");
  }
  return {};
}

}  // namespace

Result<LaunchEnvironment> read_launch_environment(const EnvironmentMap& environment) {
  LaunchEnvironment launch;
  launch.rendezvous = text_of(environment, "ELASTIC_RENDEZVOUS");
  Numbers numbers(environment);
  const bool spawned = environment.contains("ELASTIC_SLOT");
  // elasticrun may itself have been started by mpirun: the inner launcher counts.
  if (!spawned && environment.contains("OMPI_COMM_WORLD_RANK")) {
    read_open_mpi(numbers, environment, launch);
  } else if (!spawned && environment.contains("PMI_RANK")) {
    read_mpich(numbers, launch);
  } else {
    read_rank_variables(numbers, environment, launch);
  }
  if (!numbers.status().ok()) return numbers.status();
  if (Status status = check(launch, spawned); !status.ok()) return status;
  return launch;
}

}  // namespace elastic
