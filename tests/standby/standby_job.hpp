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
  /// The server that leads, found by its log; nothing where none leads within kLong.
  std::optional<std::size_t> leader();
  /// Whether the server has come to lead again since `before` lines like this one.
  bool leads(std::size_t server, std::size_t times);
  std::size_t times_led(std::size_t server);
  void signal_server(std::size_t server, int number);
  std::string server_output(std::size_t server) const;
  /// Of all servers, as workers are told them.
  std::string addresses() const;

  FaultWorker& start_worker();
  std::vector<FaultWorker*> workers();
  std::vector<FaultWorker*> but(std::size_t worker);

  const std::filesystem::path& folder() const { return scratch_.path(); }
  std::filesystem::path event_log(std::size_t server) const {
    return folder() / ("events." + std::to_string(server));
  }
  std::filesystem::path secret_file() const { return folder() / "secret"; }
  void ask_for_the_end() const;
  std::string text();

 private:
  std::string end_file() const { return (folder() / "finish").string(); }

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
