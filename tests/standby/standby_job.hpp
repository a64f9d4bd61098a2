#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fault/fault_job.hpp"
#include "tests/reserved_port.hpp"

namespace elastic::testing {

/// A job with several servers (elastic-rendezvous --store) and workers (fault_worker), each started
/// directly. All of them are killed at the end.
class StandbyJob {
 public:
  static constexpr std::chrono::seconds kLease{2 * (kSlowness > 1 ? 3 : 1)};

  StandbyJob(std::string store, int np, std::size_t servers,
             std::vector<std::string> server_options = {});

  void start_server(std::size_t server);
  /// How often the server has come to lead.
  std::size_t times_led(std::size_t server) const;
  /// Whether it does so that often, within kLong.
  bool leads(std::size_t server, std::size_t times) const;
  void signal_server(std::size_t server, int number);
  std::string server_output(std::size_t server) const;
  /// The server's exit status; nothing where it runs on after kLong.
  std::optional<int> server_exit(std::size_t server) {
    return servers_.at(server)->process->wait(kLong);
  }
  /// The list of all servers, for workers.
  std::string addresses() const;

  FaultWorker& start_worker();
  std::vector<FaultWorker*> workers();
  std::vector<FaultWorker*> but(std::size_t worker);

  const std::filesystem::path& folder() const { return scratch_.path(); }
  std::filesystem::path event_log(std::size_t server) const {
    return folder() / ("events." + std::to_string(server));
  }
  std::filesystem::path secret_file() const { return folder() / "secret"; }
  /// Its existence ends the workers' steps.
  std::string end_file() const { return (folder() / "finish").string(); }
  void ask_for_the_end() const;
  std::string text();

 private:
  const std::string store_;
  const int np_;
  const std::vector<std::string> server_options_;
  ScratchFolder scratch_;
  struct ServerProcess {
    ReservedPort port;
    std::unique_ptr<Job> process;
  };
  std::vector<std::unique_ptr<ServerProcess>> servers_;
  std::vector<std::unique_ptr<FaultWorker>> workers_;
};

}  // namespace elastic::testing
