#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <signal.h>
#include <string>
#include <vector>

#include "fault/effort.hpp"
#include "fault/network_hosts.hpp"
#include "fault/worker_log.hpp"
#include "integration/job.hpp"
#include "tests/reserved_port.hpp"

namespace elastic::testing {

/// The server's own choice, for machines that are not slowed down.
inline constexpr std::chrono::milliseconds kUsualEviction{500 * kSlowness};

struct FaultJobOptions {
  int np = 3;
  int min_np = 1;
  int max_np = 0;
  std::string transport = "auto";
  /// Silence after which the server gives a worker up. So long that load alone never does it; tests
  /// of silence take kUsualEviction.
  std::chrono::milliseconds evict_after{20000};
  std::filesystem::path journal_folder = {};  ///< where the job has its files unless given
  NetworkHosts* hosts = nullptr;  ///< the server on host 0, slots on the others; null: no network
  int slots_per_host = 1;         ///< slot s on host s / slots_per_host + 1
  std::vector<std::string> server_options = {};      ///< further ones
  std::vector<std::string> worker_environment = {};  ///< further ones
};

/// One worker process of a FaultJob.
class FaultWorker {
 public:
  FaultWorker(const std::vector<std::string>& command, const std::filesystem::path& output,
              const std::vector<std::string>& environment)
      : process_(command, output, environment), log_(output) {}

  pid_t pid() const { return process_.pid(); }
  void signal(int number) const { ::kill(pid(), number); }
  void kill() const { signal(SIGKILL); }
  /// Exit status as a shell has it, or nothing when it still runs at the deadline.
  std::optional<int> wait(std::chrono::milliseconds deadline) { return process_.wait(deadline); }
  bool running() { return !wait(std::chrono::milliseconds(0)).has_value(); }

  const WorkerLog& log() {
    log_.refresh();
    return log_;
  }

 private:
  Job process_;
  WorkerLog log_;
};

/// A job on real processes: a rendezvous server and workers (fault_worker), each started directly,
/// so that each can be stopped, killed and cut off by itself. All of them are killed at the end.
class FaultJob {
 public:
  /// Starts the server.
  explicit FaultJob(FaultJobOptions options);

  /// Starts one more worker, in the next free slot, with the arguments given.
  FaultWorker& start(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment = {});
  /// Starts the first `np` workers, all alike.
  void start_all(const std::vector<std::string>& arguments);

  FaultWorker& worker(std::size_t slot) { return *workers_.at(slot); }
  std::size_t size() const { return workers_.size(); }
  /// All workers but these.
  std::vector<FaultWorker*> others(const std::vector<std::size_t>& than);

  pid_t server_pid() const { return server_->pid(); }
  bool server_runs() { return !server_->wait(std::chrono::milliseconds(0)).has_value(); }
  void kill_server();
  /// Starts a server on the same port and journal; `with` are further options.
  void restart_server(const std::vector<std::string>& with = {});
  const std::string& address() const { return address_; }
  std::filesystem::path journal() const {
    return (options_.journal_folder.empty() ? folder() : options_.journal_folder) / "journal";
  }
  std::filesystem::path secret_file() const { return scratch_.path() / "secret"; }
  const std::filesystem::path& folder() const { return scratch_.path(); }

  /// The file whose existence ends the steps: give it to workers as "until=...".
  std::string end_file() const { return (scratch_.path() / "finish").string(); }
  void ask_for_the_end() const;

  /// Waits until a worker has told so many lines that start so; false when it ended before.
  static bool await_line(FaultWorker& worker, const std::string& start, std::size_t count = 1);
  /// Waits until each has made so many more steps than it has now; false when one ended before.
  static bool await_steps(const std::vector<FaultWorker*>& workers, std::size_t more);

  /// The output of all workers and servers, for a failing test to show.
  std::string text();

 private:
  void start_server(const std::vector<std::string>& with);
  std::vector<std::string> on_host(std::size_t host, std::vector<std::string> command) const;
  std::size_t host_of(std::size_t slot) const {
    return slot / static_cast<std::size_t>(options_.slots_per_host) + 1;
  }

  FaultJobOptions options_;
  ScratchFolder scratch_;
  const ReservedPort port_;  ///< the server's, unless it is on a host of its own
  std::string address_;
  std::unique_ptr<Job> server_;
  int servers_ = 0;
  std::vector<std::unique_ptr<FaultWorker>> workers_;
};

}  // namespace elastic::testing
