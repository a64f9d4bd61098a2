#include "fault/fault_job.hpp"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace elastic::testing {

namespace {

constexpr const char* kJob = "fault";

}  // namespace

FaultJob::FaultJob(FaultJobOptions options) : options_(std::move(options)) {
  write_secret(secret_file(), '5');
  start_server({});
}

std::vector<std::string> FaultJob::on_host(std::size_t host,
                                           std::vector<std::string> command) const {
  if (options_.hosts == nullptr) return command;
  std::vector<std::string> result = options_.hosts->enter(host);
  result.insert(result.end(), command.begin(), command.end());
  return result;
}

void FaultJob::start_server(const std::vector<std::string>& with) {
  const std::string bind = options_.hosts == nullptr ? "127.0.0.1" : options_.hosts->address(0);
  // On a host of its own no other program takes the port while the server is down.
  const std::string port = options_.hosts == nullptr ? std::to_string(port_.number())
                           : address_.empty()        ? "0"
                                                     : address_.substr(address_.rfind(':') + 1);
  const auto port_file = folder() / ("port." + std::to_string(servers_));
  std::vector<std::string> command{ELASTIC_RENDEZVOUS,
                                   "--bind",
                                   bind,
                                   "--port",
                                   port,
                                   "--np",
                                   std::to_string(options_.np),
                                   "--min-np",
                                   std::to_string(options_.min_np),
                                   "--max-np",
                                   std::to_string(options_.max_np),
                                   "--job",
                                   kJob,
                                   "--secret-file",
                                   secret_file().string(),
                                   "--port-file",
                                   port_file.string(),
                                   "--journal",
                                   journal().string(),
                                   "--evict-after-ms",
                                   std::to_string(options_.evict_after.count()),
                                   "--log-level",
                                   "info"};
  if (encrypted()) command.emplace_back("--encrypt");
  command.insert(command.end(), options_.server_options.begin(), options_.server_options.end());
  command.insert(command.end(), with.begin(), with.end());
  server_ = std::make_unique<Job>(on_host(0, command),
                                  folder() / ("server." + std::to_string(servers_++)));
  const bool listens =
      eventually(kLong, [&] { return std::filesystem::exists(port_file) || !server_runs(); });
  if (!listens || !std::filesystem::exists(port_file)) {
    ADD_FAILURE() << "the server does not start\n" << text();
    return;
  }
  address_ = nlohmann::json::parse(read_file(port_file)).at("address");
}

FaultWorker& FaultJob::start(const std::vector<std::string>& arguments,
                             const std::vector<std::string>& environment) {
  const std::size_t slot = workers_.size();
  std::vector<std::string> command{FAULT_WORKER};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables{"ELASTIC_RENDEZVOUS=" + address_,
                                     std::string("ELASTIC_JOB=") + kJob,
                                     "ELASTIC_SECRET_FILE=" + secret_file().string(),
                                     "ELASTIC_SLOT=" + std::to_string(slot),
                                     "ELASTIC_TRANSPORT=" + options_.transport,
                                     std::string("ELASTIC_ENCRYPT=") + (encrypted() ? "1" : "0"),
                                     "ELASTIC_LOG_LEVEL=info"};
  if (options_.hosts != nullptr) {
    variables.push_back("ELASTIC_BIND=" + options_.hosts->address(host_of(slot)));
  }
  const auto add = [&variables](const std::vector<std::string>& more) {
    variables.insert(variables.end(), more.begin(), more.end());
  };
  add(options_.worker_environment);
  add(environment);
  workers_.push_back(std::make_unique<FaultWorker>(
      on_host(host_of(slot), command), folder() / ("worker." + std::to_string(slot)), variables));
  return *workers_.back();
}

void FaultJob::start_all(const std::vector<std::string>& arguments) {
  for (int slot = 0; slot < options_.np; ++slot) start(arguments);
}

std::vector<FaultWorker*> FaultJob::others(const std::vector<std::size_t>& than) {
  std::vector<FaultWorker*> result;
  for (std::size_t slot = 0; slot < workers_.size(); ++slot) {
    if (std::find(than.begin(), than.end(), slot) == than.end()) result.push_back(&worker(slot));
  }
  return result;
}

void FaultJob::kill_server() {
  ::kill(server_->pid(), SIGKILL);
  EXPECT_TRUE(server_->wait(kLong).has_value());
}

void FaultJob::restart_server(const std::vector<std::string>& with) {
  start_server(with);
}

void FaultJob::ask_for_the_end() const {
  std::ofstream(end_file()) << "now\n";
}

bool FaultJob::await_line(FaultWorker& worker, const std::string& start, std::size_t count) {
  eventually(kLong, [&] { return worker.log().count(start) >= count || !worker.running(); });
  return worker.log().count(start) >= count;
}

bool FaultJob::await_steps(const std::vector<FaultWorker*>& workers, std::size_t more) {
  std::vector<std::size_t> wanted;
  for (FaultWorker* worker : workers) wanted.push_back(worker->log().steps().size() + more);
  const auto there = [&] {
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (workers[i]->log().steps().size() < wanted[i]) return false;
    }
    return true;
  };
  const auto ended = [](FaultWorker* worker) { return !worker->running(); };
  eventually(kLong, [&] { return there() || std::any_of(workers.begin(), workers.end(), ended); });
  return there();
}

std::string FaultJob::text() {
  std::string result;
  for (int i = 0; i < servers_; ++i) {
    const std::string name = "server." + std::to_string(i);
    result += name + ":\n" + read_file(folder() / name);
  }
  for (std::size_t slot = 0; slot < workers_.size(); ++slot) {
    result += "worker " + std::to_string(slot) + ":\n" + worker(slot).log().text();
  }
  return result;
}

}  // namespace elastic::testing
