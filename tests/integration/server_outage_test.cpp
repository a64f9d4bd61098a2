// Agents whose server ends and is started again, or is not: workers that die meanwhile, and those
// that finish. Real processes.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "integration/ended.hpp"
#include "integration/job.hpp"
#include "tests/eventually.hpp"
#include "tests/reserved_port.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kTimeLimit = std::chrono::milliseconds(40000) * kHangFactor;

class ServerOutageTest : public ::testing::Test {
 protected:
  ServerOutageTest() { write_secret(secret_, '7'); }

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
  std::size_t told(const std::string& what) const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(what + ".") && name.find(".new") == std::string::npos) ++count;
    }
    return count;
  }
  bool trained(std::size_t workers) const {
    return eventually(kTimeLimit, [&] { return told("trained") >= workers; });
  }
  /// One worker on each.
  void begin_on_two_hosts() {
    start_server(2);
    first_ = agent("first", 1);
    ASSERT_TRUE(eventually(kTimeLimit, [&] { return status()["launchers"].size() == 1; }));
    second_ = agent("second", 1);
    ASSERT_TRUE(trained(2)) << first_->output() << second_->output();
  }
  bool second_says(const std::string& text) const {
    return eventually(kTimeLimit,
                      [&] { return second_->output().find(text) != std::string::npos; });
  }
  void expect_replacement() const {
    ASSERT_TRUE(trained(3)) << second_->output();
    finish();
    EXPECT_EQ(first_->wait(kTimeLimit), 0) << first_->output();
    EXPECT_EQ(second_->wait(kTimeLimit), 0) << second_->output();
    EXPECT_THAT(second_->output(), HasSubstr("starting it again (restart 1 of 3)"));
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
  std::unique_ptr<Job> first_;
  std::unique_ptr<Job> second_;
};

/// The server is away for less time than a launcher waits for its answer.
TEST_F(ServerOutageTest, TheOnlyWorkerOfAHostThatDiesMeanwhileIsReplaced) {
  begin_on_two_hosts();
  const pid_t worker = worker_of(1);
  ASSERT_GT(worker, 0);
  kill_server();
  ::kill(worker, SIGKILL);
  start_server(2);
  expect_replacement();
}

TEST_F(ServerOutageTest, TheOnlyWorkerOfAHostIsReplacedAfterALongOutageToo) {
  begin_on_two_hosts();
  const pid_t worker = worker_of(1);
  ASSERT_GT(worker, 0);
  kill_server();
  ::kill(worker, SIGKILL);
  ASSERT_TRUE(second_says("No worker is left here: the server is waited for, for 600 s in all"));
  start_server(2);
  expect_replacement();
}

TEST_F(ServerOutageTest, ATrainingThatEndsMeanwhileIsTakenForFinished) {
  begin_on_two_hosts();
  kill_server();
  finish();
  for (Job* agent : {first_.get(), second_.get()}) {
    EXPECT_EQ(agent->wait(kTimeLimit), 0) << agent->output();
    EXPECT_THAT(agent->output(),
                HasSubstr("elasticrun: the workers of this host ended with code 0 while the job's "
                          "server was away: taken for finished"));
  }
}

}  // namespace
}  // namespace elastic::testing
