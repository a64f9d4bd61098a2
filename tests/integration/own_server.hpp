#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "integration/ended.hpp"
#include "integration/job.hpp"
#include "tests/eventually.hpp"
#include "tests/reserved_port.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {

/// A training whose server is a program of its own, with a journal, and whose workers are started
/// by agents (elasticrun --join).
class OwnServerTest : public ::testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kTimeLimit =
      std::chrono::milliseconds(40000) * kHangFactor;

  OwnServerTest() { write_secret(secret_, '7'); }

  void start_server(int np) {
    std::filesystem::remove(path("port"));
    server_ = std::make_unique<Job>(
        std::vector<std::string>{ELASTIC_RENDEZVOUS, "--np", std::to_string(np), "--job", "j",
                                 "--port", std::to_string(port_.number()), "--secret-file",
                                 secret_.string(), "--journal", path("journal"), "--port-file",
                                 path("port")},
        path("server-output"));
    ASSERT_TRUE(eventually(kTimeLimit, [&] { return std::filesystem::exists(path("port")); }))
        << server_->output();
  }
  void kill_server() {
    ::kill(server_->pid(), SIGKILL);
    ASSERT_TRUE(server_->wait(kTimeLimit));
  }
  /// An agent, as on a host of its own.
  std::unique_ptr<Job> agent(const std::string& host, int workers) {
    return std::make_unique<Job>(
        std::vector<std::string>{
            ELASTICRUN, "--join", port_.address(), "--secret-file", secret_.string(), "--host-name",
            host, "-np", std::to_string(workers), ELASTIC_TRAINER, scratch_.path().string()},
        path("output-" + host));
  }
  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }
  /// The texts that the workers told of themselves, in the order of their processes.
  std::vector<std::string> told(const std::string& what) const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(what + ".") || name.find(".new") != std::string::npos) continue;
      found[name] = read_file(entry.path());
    }
    std::vector<std::string> texts;
    for (const auto& [name, text] : found) texts.push_back(text);
    return texts;
  }
  bool trained(std::size_t workers) const {
    return eventually(kTimeLimit, [&] { return told("trained").size() >= workers; });
  }
  /// One worker on each host. Their agents have the numbers 0, 1, ...
  void begin_on(std::size_t hosts) {
    start_server(static_cast<int>(hosts));
    for (std::size_t host = 0; host < hosts; ++host) {
      agents_.push_back(agent("host-" + std::to_string(host), 1));
      ASSERT_TRUE(eventually(kTimeLimit, [&] { return status()["launchers"].size() == host + 1; }));
    }
    ASSERT_TRUE(trained(hosts)) << agents_.back()->output();
  }
  void finish() const { std::ofstream(path("finish")) << "now" << std::endl; }
  nlohmann::json status() const {
    const Ended ended = run({ELASTICRUN, "ctl", "--rendezvous", port_.address(), "--job", "j",
                             "--secret-file", secret_.string(), "status", "--json"});
    return nlohmann::json::parse(ended.output, nullptr, false);
  }
  /// The process of a host's only worker.
  pid_t worker_of(int launcher) const {
    const nlohmann::json now = status();
    for (const auto& member : now["members"]) {
      if (member["slot"] == "slot-" + std::to_string(launcher) + ".0") return member["pid"];
    }
    return 0;
  }

  const ScratchFolder scratch_;
  const std::filesystem::path secret_ = scratch_.path() / "secret";
  const ReservedPort port_;
  std::unique_ptr<Job> server_;
  std::vector<std::unique_ptr<Job>> agents_;
};

}  // namespace elastic::testing
