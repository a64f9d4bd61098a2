#include "standby/standby_job.hpp"

#include <fstream>
#include <utility>

namespace elastic::testing {

namespace {

constexpr const char* kJob = "standby";

std::size_t count_of(const std::string& what, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

StandbyJob::StandbyJob(std::string store, int np, std::size_t servers,
                       std::vector<std::string> server_options)
    : store_(std::move(store)), np_(np), server_options_(std::move(server_options)) {
  write_secret(secret_file(), '5');
  for (std::size_t i = 0; i < servers; ++i) servers_.push_back(std::make_unique<ServerProcess>());
}

void StandbyJob::start_server(std::size_t server) {
  std::vector<std::string> command{ELASTIC_RENDEZVOUS,
                                   "--store",
                                   store_,
                                   "--job",
                                   kJob,
                                   "--port",
                                   std::to_string(servers_.at(server)->port.number()),
                                   "--np",
                                   std::to_string(np_),
                                   "--secret-file",
                                   secret_file().string(),
                                   "--lease-seconds",
                                   std::to_string(kLease.count()),
                                   "--return-window-ms",
                                   std::to_string(3000 * kSlowness),
                                   "--evict-after-ms",
                                   "20000",
                                   "--event-log",
                                   event_log(server).string()};
  command.insert(command.end(), server_options_.begin(), server_options_.end());
  servers_[server]->process =
      std::make_unique<Job>(command, folder() / ("server." + std::to_string(server)));
}

std::size_t StandbyJob::times_led(std::size_t server) const {
  return count_of("job standby at ", server_output(server));
}

bool StandbyJob::leads(std::size_t server, std::size_t times) const {
  return eventually(kLong, [&] { return times_led(server) >= times; });
}

void StandbyJob::signal_server(std::size_t server, int number) {
  ::kill(servers_.at(server)->process->pid(), number);
}

std::string StandbyJob::server_output(std::size_t server) const {
  const auto& process = servers_.at(server)->process;
  return process ? process->output() : "";
}

std::string StandbyJob::addresses() const {
  std::string list;
  for (const auto& server : servers_) list += (list.empty() ? "" : ",") + server->port.address();
  return list;
}

FaultWorker& StandbyJob::start_worker() {
  const std::string slot = std::to_string(workers_.size());
  const std::vector<std::string> command{FAULT_WORKER, "kind=train", "until=" + end_file(),
                                         "pause_us=500"};
  const std::vector<std::string> environment{"ELASTIC_RENDEZVOUS=" + addresses(),
                                             std::string("ELASTIC_JOB=") + kJob,
                                             "ELASTIC_SECRET_FILE=" + secret_file().string(),
                                             "ELASTIC_SLOT=" + slot, "ELASTIC_LOG_LEVEL=info"};
  workers_.push_back(
      std::make_unique<FaultWorker>(command, folder() / ("worker." + slot), environment));
  return *workers_.back();
}

std::vector<FaultWorker*> StandbyJob::workers() {
  return but(workers_.size());
}

std::vector<FaultWorker*> StandbyJob::but(std::size_t worker) {
  std::vector<FaultWorker*> result;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (i != worker) result.push_back(workers_[i].get());
  }
  return result;
}

void StandbyJob::ask_for_the_end() const {
  std::ofstream(end_file()) << "now\n";
}

std::string StandbyJob::text() {
  std::string result;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    result += "server " + std::to_string(i) + ":\n" + server_output(i);
  }
  for (const auto& worker : workers_) result += "worker:\n" + worker->log().text();
  return result;
}

}  // namespace elastic::testing
