#include "runtime/mpirun_server.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <signal.h>
#include <spawn.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/secret_descriptor.hpp"
#include "base/unique_fd.hpp"
#include "rendezvous/client/control_client.hpp"
#include "rendezvous/launcher/job_file.hpp"
#include "rendezvous/launcher/private_folder.hpp"
#include "rendezvous/launcher/program_path.hpp"

namespace elastic::runtime {

namespace {

constexpr const char* kProgram = "elastic-rendezvous";
constexpr Milliseconds kPause{10};  ///< between looks for a file
constexpr Milliseconds kLongestAnswer{5000};
/// The numbers of these descriptors in the server.
constexpr int kSecretFd = 3;
constexpr int kStarterFd = 4;

Status unavailable(const std::string& what, int why) {
  return Status(Code::kUnavailable, what + ": " + std::strerror(why));
}

/// A hash of any text, for use in a file's name.
std::string hash_of(const std::string& text) {
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016zx", std::hash<std::string>{}(text));
  return hex;
}

/// A name that all workers of one launch have in common, and no other launch that is alive has.
std::string launch_name(const LaunchEnvironment& launch) {
  if (launch.launcher == LaunchEnvironment::Launcher::kNone) {
    const auto self = launcher::ProcessIdentity::of_this_process();
    return "single-" + std::to_string(self.pid) + "-" + std::to_string(self.start_time);
  }
  if (!launch.launch_key.empty()) return "launch-" + hash_of(launch.launch_key);
  const pid_t parent = ::getppid();
  return "mpirun-" + std::to_string(parent) + "-" +
         std::to_string(launcher::start_time_of(parent).value_or(0));
}

std::string job_name(const LaunchEnvironment& launch, const std::string& job) {
  return launch_name(launch) + (job.empty() ? "" : "-" + hash_of(job));
}

/// Looks beside the library of this code, in the bin folder next to its lib, and in PATH.
Result<std::string> find_server_program(const EnvironmentMap& environment) {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&find_or_start_server), &self) != 0 &&
      self.dli_fname != nullptr) {
    const auto folder = std::filesystem::path(self.dli_fname).parent_path();
    for (const auto& place : {folder / kProgram, folder.parent_path() / "bin" / kProgram}) {
      if (auto found = launcher::find_program(place.string(), ""); found.ok()) return found;
    }
  }
  const auto path = environment.find("PATH");
  auto found = launcher::find_program(kProgram, path == environment.end() ? "" : path->second);
  if (found.ok()) return found;
  return Status(Code::kUnavailable,
                std::string(kProgram) +
                    " is neither beside libelastic nor in PATH; without it, start with elasticrun "
                    "or set ELASTIC_RENDEZVOUS");
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> made;
  for (auto& text : texts) made.push_back(text.data());
  made.push_back(nullptr);
  return made;
}

/// Owns posix_spawn's two objects.
class SpawnSetup {
 public:
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  Result<pid_t> spawn(const std::string& program, std::vector<std::string> arguments,
                      const EnvironmentMap& environment, int secret_fd, int starter_fd) {
    // mpirun waits until its pipes are closed, and kills its process group: the server stays out of
    // both.
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      ::posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_RDWR, 0);
    }
    ::posix_spawn_file_actions_adddup2(&actions_, secret_fd, kSecretFd);
    ::posix_spawn_file_actions_adddup2(&actions_, starter_fd, kStarterFd);
    // Closes all other descriptors, also those inherited or opened without O_CLOEXEC.
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, kStarterFd + 1);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID);
    std::vector<std::string> variables;
    for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
    pid_t pid = -1;
    const int why = ::posix_spawn(&pid, program.c_str(), &actions_, &attributes_,
                                  pointers(arguments).data(), pointers(variables).data());
    if (why != 0) return unavailable(program, why);
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// A pipe without data: the read end is at its end when the last holder of the write end is gone.
struct StarterPipe {
  UniqueFd read_end;
  std::shared_ptr<const UniqueFd> write_end;
};

Result<StarterPipe> make_starter_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return unavailable("pipe", errno);
  UniqueFd read_end(ends[0]);
  StarterPipe pipe{{}, std::make_shared<const UniqueFd>(ends[1])};
  // Moved above the numbers of the server's descriptors, so that none of these overwrites it.
  pipe.read_end.reset(::fcntl(read_end.get(), F_DUPFD_CLOEXEC, kStarterFd + 1));
  if (!pipe.read_end) return unavailable("pipe", errno);
  return pipe;
}

std::optional<std::string> read_port_file(const std::string& path) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("address") || !json["address"].is_string()) {
    return std::nullopt;
  }
  return json["address"].get<std::string>();
}

Result<std::string> await_address(const std::string& port_file, pid_t server, TimePoint deadline) {
  while (true) {
    if (const auto address = read_port_file(port_file)) return *address;
    if (!launcher::start_time_of(server)) {
      return Status(Code::kUnavailable, std::string(kProgram) + " ended at once; run it by hand");
    }
    if (Clock::now() >= deadline) {
      return Status(Code::kTimeout, std::string(kProgram) + " did not start in time");
    }
    std::this_thread::sleep_for(kPause);
  }
}

Result<ServerLocation> start_server(const LaunchEnvironment& launch, const std::string& job,
                                    const EnvironmentMap& environment, const std::string& folder,
                                    bool encrypt, TimePoint deadline) {
  const auto program = find_server_program(environment);
  if (!program.ok()) return program.status();
  auto starter = make_starter_pipe();
  if (!starter.ok()) return starter.status();
  ServerLocation location{"", job, random_secret(), starter.value().write_end};
  const auto secret_fd = secret_descriptor(location.secret);
  if (!secret_fd.ok()) return secret_fd.status();
  const std::string port_file = folder + "/" + location.job + ".port";
  ::unlink(port_file.c_str());
  std::vector<std::string> arguments{kProgram,
                                     "--np",
                                     std::to_string(launch.np),
                                     "--min-np",
                                     "1",
                                     "--job",
                                     location.job,
                                     "--secret-file",
                                     "/dev/fd/" + std::to_string(kSecretFd),
                                     "--port-file",
                                     port_file,
                                     "--job-record",
                                     launcher::job_record_path(folder, location.job),
                                     "--exit-when-done",
                                     "--starter-fd",
                                     std::to_string(kStarterFd)};
  if (encrypt) arguments.emplace_back("--encrypt");
  const auto server = SpawnSetup().spawn(program.value(), std::move(arguments), environment,
                                         secret_fd.value().get(), starter.value().read_end.get());
  if (!server.ok()) return server.status();
  const auto address = await_address(port_file, server.value(), deadline);
  ::unlink(port_file.c_str());
  if (!address.ok()) {
    ::kill(server.value(), SIGTERM);
    return address.status();
  }
  location.address = address.value();

  // An earlier job of these processes is over: its record makes room for the new one.
  launcher::remove_job_record(folder, location.job);
  const Status written = launcher::write_job_record(
      folder, {location.job,
               location.address,
               location.secret,
               encrypt,
               {server.value(), launcher::start_time_of(server.value()).value_or(0)}});
  if (!written.ok()) return written;
  return location;
}

enum class Answer { kNone, kServes, kIsOver };

/// A server lives for a moment after its job, and the same launch may start another one.
Answer ask(const launcher::JobRecord& record) {
  const auto answer =
      rendezvous::request(record.address, record.job, record.secret, rendezvous::StatusRequest{},
                          kLongestAnswer, record.encrypt);
  if (!answer.ok()) {
    // A refusal is for the worker to see.
    return answer.status().code() == Code::kUnavailable ? Answer::kNone : Answer::kServes;
  }
  const auto* status = std::get_if<rendezvous::StatusReply>(&answer.value());
  const bool over = status != nullptr && (status->phase == "done" || status->phase == "failed");
  return over ? Answer::kIsOver : Answer::kServes;
}

Result<ServerLocation> await_server(const std::string& job, const std::string& folder,
                                    TimePoint deadline) {
  pid_t over = 0;  // the server of an earlier training
  while (true) {
    const auto record = launcher::find_job_record(folder, job);
    if (record && record->owner.pid != over) {
      const Answer answer = ask(*record);
      if (answer == Answer::kServes) {
        return ServerLocation{record->address, record->job, record->secret, nullptr};
      }
      if (answer == Answer::kIsOver) over = record->owner.pid;
    }
    if (Clock::now() >= deadline) {
      return Status(Code::kTimeout, "rank 0 has not started a rendezvous server in time (job " +
                                        job + " in " + folder +
                                        "): does it call elastic::init, and on this machine?" +
                                        (over != 0 ? " That of an earlier training is over" : ""));
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Result<ServerLocation> find_or_start_server(const LaunchEnvironment& launch, const std::string& job,
                                            const EnvironmentMap& environment, bool encrypt,
                                            TimePoint deadline) {
  const auto folder = launcher::private_folder(environment);
  if (!folder.ok()) return folder.status();
  const std::string name = job_name(launch, job);
  if (launch.rank != 0) return await_server(name, folder.value(), deadline);
  launcher::running_jobs(folder.value());  // removes the records of ended jobs
  return start_server(launch, name, environment, folder.value(), encrypt, deadline);
}

}  // namespace elastic::runtime
