// Workers that are given up because they do not answer, and whose processes have to end: what their
// launchers are told, and what elasticrun does about it. The members are connections of the test,
// and have the processes that it names; the server and elasticrun are real.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/secret.hpp"
#include "integration/job.hpp"
#include "rendezvous_fixture.hpp"
#include "tests/slowness.hpp"

namespace elastic::rendezvous {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The messages to a launcher's connection.
struct Told {
  std::shared_ptr<Connection> connection;
  std::vector<EndWorker> to_end;
  int answers = 0;  // to StatusRequest
  bool ended = false;
};

class SilentWorkerTest : public RendezvousTest {
 protected:
  ~SilentWorkerTest() override {
    for (const auto& each : launchers_) each->connection->abort("done");
    (void)eventually([&] {
      return std::ranges::all_of(launchers_, [](const auto& each) { return each->ended; });
    });
  }

  void serve_workers(int count) {
    ServerOptions with = options(count);
    with.membership.evict_after = with.membership.disconnect_grace = Milliseconds(1000) * kSlowness;
    serve(with);
  }
  /// On another host, the same for all, so that the server cannot see whether its process has
  /// ended.
  void enter_worker(const std::string& label, std::int64_t pid) {
    ClientOptions its = client_options("w" + std::to_string(workers_.size()));
    Register registration = its.registration();
    registration.endpoints.host = "elsewhere";
    registration.label = label;
    registration.pid = pid;
    registration.end_if_silent = true;
    its.registration = [registration] { return registration; };
    workers_.push_back(std::make_unique<Worker>(io_, its));
  }
  /// A connection of this launcher; the first one has number 0.
  Told& enlist(std::optional<bool> ends_silent, const std::string& id = "agent") {
    launchers_.push_back(std::make_shared<Told>());
    const auto told = launchers_.back();
    const auto dialed = enter({kProtocolVersion, kJob, "launcher"});
    EXPECT_TRUE(dialed.ok()) << dialed.status().message();
    told->connection = dialed.value();
    asio::co_spawn(io_, listen(told),
                   [told](std::exception_ptr /*thrown*/) { told->ended = true; });
    told->connection->send(
        Enlist{.id = id, .host = id, .slots = 1, .running = 1, .ends_silent = ends_silent});
    return *told;
  }
  /// The workers that it has been told of so far.
  std::vector<EndWorker> to_end(Told& launcher) {
    const int before = launcher.answers;
    launcher.connection->send(StatusRequest{});
    EXPECT_TRUE(eventually([&] { return launcher.answers > before; }));
    return launcher.to_end;
  }
  /// elasticrun with two processes that are no workers: each writes its number into a file.
  std::unique_ptr<testing::Job> launch() {
    const auto secret = scratch_.path() / "secret";
    std::ofstream(secret) << to_hex(secret_) << "\n";
    std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
    return std::make_unique<testing::Job>(
        std::vector<std::string>{
            ELASTICRUN, "--join", server_->address(), "--secret-file", secret.string(), "-np", "2",
            "--max-restarts", "1", "/bin/sh", "-c",
            "echo $$ > " + scratch_.path().string() + "/$ELASTIC_LABEL; exec sleep 1000"},
        scratch_.path() / "output");
  }
  /// The number of the process that was last in this slot; 0: none yet.
  pid_t pid_in(const std::string& label) const {
    const std::string text = testing::read_file(scratch_.path() / label);
    return text.ends_with('\n') ? std::stoi(text) : 0;
  }

  const testing::ScratchFolder scratch_;

 private:
  static asio::awaitable<void> listen(std::shared_ptr<Told> told) {
    while (true) {
      const Result<Message> message = co_await told->connection->read();
      if (!message.ok()) co_return;
      if (const auto* worker = std::get_if<EndWorker>(&message.value())) {
        told->to_end.push_back(*worker);
      }
      told->answers += std::holds_alternative<StatusReply>(message.value()) ? 1 : 0;
    }
  }

  std::vector<std::shared_ptr<Told>> launchers_;
};

TEST_F(SilentWorkerTest, ItsLauncherIsToldOnEachConnectionUntilItHasEnded) {
  serve_workers(3);
  enter_worker("", 1);
  enter_worker("", 1);
  enter_worker("slot-0", 77);
  ASSERT_TRUE(eventually([&] { return all_see(1, 3); }));
  Told& older = enlist(std::nullopt);
  workers_.pop_back();
  ASSERT_TRUE(eventually([&] { return all_see(2, 2); }));
  workers_[0]->client->send(Ready{});
  ASSERT_TRUE(eventually([&] { return status().joinable; })) << "the neighbour is heard";
  EXPECT_TRUE(to_end(older).empty()) << "an earlier release does not know the message";
  for (int connection = 0; connection < 2; ++connection) {
    const std::vector<EndWorker> told = to_end(enlist(true));
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].label, "slot-0");
    EXPECT_EQ(told[0].pid, 77);
    EXPECT_THAT(told[0].why, HasSubstr("did not come back"));
  }
  Told& last = enlist(true);
  last.connection->send(WorkerEnded{1, "slot-0", "died of signal 9 (Killed)", 77});
  EXPECT_EQ(to_end(last).size(), 1U);
  EXPECT_TRUE(to_end(enlist(true)).empty());
}

/// Each launcher ends its own workers.
TEST_F(SilentWorkerTest, OtherLaunchersAreNotTold) {
  serve_workers(3);
  enter_worker("slot-0", 76);
  enter_worker("slot-1", 77);
  enter_worker("slot-1.0", 77);
  ASSERT_TRUE(eventually([&] { return all_see(1, 3); }));
  Told& other = enlist(true, "first");
  EXPECT_TRUE(to_end(other).empty());
  Told& its = enlist(true, "second");
  EXPECT_TRUE(to_end(its).empty());
  workers_.pop_back();
  ASSERT_TRUE(eventually([&] { return !its.to_end.empty(); }));
  EXPECT_EQ(its.to_end[0].label, "slot-1.0");
  EXPECT_TRUE(to_end(other).empty());
}

TEST_F(SilentWorkerTest, ElasticrunKillsTheProcessThatIsMeantAndNoOther) {
  serve_workers(5);
  const auto elasticrun = launch();
  ASSERT_TRUE(eventually([&] { return pid_in("slot-0") != 0 && pid_in("slot-1") != 0; }))
      << elasticrun->output();
  const pid_t meant = pid_in("slot-0");
  for (int other = 0; other < 3; ++other) enter_worker("", 1);
  enter_worker("slot-0", meant);
  enter_worker("slot-1", ::getpid());  // as one that was in the slot before the present one
  ASSERT_TRUE(eventually([&] { return all_see(1, 5); })) << elasticrun->output();
  workers_.pop_back();
  ASSERT_TRUE(eventually([&] { return all_see(2, 4); }));
  workers_[0]->client->send(Ready{});
  ASSERT_TRUE(eventually([&] { return status().joinable; })) << "elasticrun is told of slot-1";
  workers_.pop_back();
  ASSERT_TRUE(eventually([&] { return all_see(3, 3); }));
  EXPECT_TRUE(eventually([&] { return pid_in("slot-0") != meant && pid_in("slot-0") != 0; }))
      << elasticrun->output();
  const std::string said = elasticrun->output();
  EXPECT_THAT(said, HasSubstr("killing worker 0 (process " + std::to_string(meant) +
                              "): the job has given it up: its connection was lost"));
  EXPECT_THAT(said, Not(HasSubstr("killing worker 1")));
  EXPECT_EQ(::kill(pid_in("slot-0"), 0), 0) << said;
  EXPECT_EQ(::kill(pid_in("slot-1"), 0), 0) << said;
}

}  // namespace
}  // namespace elastic::rendezvous
