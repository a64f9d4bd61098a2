// A job with two servers and its journal in a real etcd of three members. The server that leads
// dies, hangs or is told to end; a member of etcd dies. The training goes on.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <signal.h>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fault/step_checks.hpp"
#include "rendezvous/etcd/base64.hpp"
#include "standby/etcd_cluster.hpp"
#include "standby/standby_job.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

/// A standby is to lead so soon after the lease's end.
constexpr milliseconds kTakeover{3000 * kSlowness};

class StandbyTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kMembers = 3;
  static constexpr int kWorkers = 3;

  void SetUp() override {
    if (!EtcdCluster::is_there()) GTEST_SKIP() << "etcd is not installed (package etcd-server)";
    etcd_.emplace(scratch_.path(), kMembers);
    ASSERT_TRUE(etcd_->serves()) << etcd_->text();
    job_.emplace(etcd_->store(), kWorkers, 2);
  }

  /// Server 0 leads, server 1 stands by, and the workers train.
  void begin() {
    job_->start_server(0);
    ASSERT_TRUE(job_->leads(0, 1)) << job_->text();
    job_->start_server(1);
    ASSERT_TRUE(eventually(kLong, [&] {
      return job_->server_output(1).find("waits as a standby") != std::string::npos;
    })) << job_->text();
    for (int i = 0; i < kWorkers; ++i) job_->start_worker();
    ASSERT_TRUE(FaultJob::await_steps(job_->workers(), 20)) << job_->text();
  }

  /// Server 1 leads in time, while the members train; then it admits a worker, and all steps hold.
  void expect_takeover(SteadyClock::time_point lost_at) {
    ASSERT_TRUE(FaultJob::await_steps(job_->workers(), 50)) << job_->text();
    ASSERT_TRUE(job_->leads(1, 1)) << job_->text();
    const auto took = std::chrono::duration_cast<milliseconds>(SteadyClock::now() - lost_at);
    EXPECT_LE(took.count(), (StandbyJob::kLease + kTakeover).count());
  }

  void expect_membership_goes_on() {
    const std::uint64_t before = generation(*job_->workers().front());
    FaultWorker& joiner = job_->start_worker();
    ASSERT_TRUE(FaultJob::await_line(joiner, "entered")) << job_->text();
    ASSERT_TRUE(FaultJob::await_steps(job_->workers(), 20)) << job_->text();
    EXPECT_GT(generation(joiner), before);
    expect_one_view_per_generation(job_->workers());
    expect_generations_grow();
  }

  /// The exit code of `elasticrun ctl` with these words.
  std::optional<int> control(const std::vector<std::string>& words) const {
    std::vector<std::string> command{
        ELASTICRUN, "ctl",     "--rendezvous",  job_->addresses(),
        "--job",    "standby", "--secret-file", job_->secret_file().string()};
    command.insert(command.end(), words.begin(), words.end());
    return Job(command, job_->folder() / "control").wait(kLong);
  }
  std::string control_output() const { return read_file(job_->folder() / "control"); }

  /// After the end: both servers, the standby first.
  void end_servers(int signal) {
    for (const std::size_t server : {std::size_t{1}, std::size_t{0}}) {
      job_->signal_server(server, signal);
      ASSERT_TRUE(job_->server_exit(server)) << job_->text();
    }
  }

  void expect_another_training() {
    std::filesystem::remove(job_->end_file());
    std::vector<FaultWorker*> others;
    for (int i = 0; i < kWorkers; ++i) others.push_back(&job_->start_worker());
    EXPECT_TRUE(FaultJob::await_steps(others, 20)) << job_->text();
  }

  void finish() {
    job_->ask_for_the_end();
    expect_end(job_->workers());
    expect_same_steps(job_->workers());
    if (HasFailure()) ADD_FAILURE() << job_->text();
  }

  /// By the event logs of both servers, in the order of time: no generation is given twice.
  void expect_generations_grow() {
    std::vector<nlohmann::json> views;
    for (const std::size_t server : {std::size_t{0}, std::size_t{1}}) {
      std::ifstream log(job_->event_log(server));
      for (std::string line; std::getline(log, line);) {
        const auto event = nlohmann::json::parse(line);
        if (event.at("event") == "view") views.push_back(event);
      }
    }
    ASSERT_GE(views.size(), 2U);
    std::sort(views.begin(), views.end(),
              [](const auto& a, const auto& b) { return a.at("time") < b.at("time"); });
    for (std::size_t i = 1; i < views.size(); ++i) {
      // A server that takes over notes the view that it takes up, too.
      const bool same = views[i].at("generation") == views[i - 1].at("generation") &&
                        views[i].at("slots") == views[i - 1].at("slots");
      EXPECT_TRUE(same || views[i].at("generation") > views[i - 1].at("generation"))
          << views[i - 1] << " before " << views[i];
    }
  }

  ScratchFolder scratch_;
  std::optional<EtcdCluster> etcd_;
  std::optional<StandbyJob> job_;
};

TEST_F(StandbyTest, TakesOverFromALeaderThatDies) {
  ASSERT_NO_FATAL_FAILURE(begin());
  job_->signal_server(0, SIGKILL);
  ASSERT_NO_FATAL_FAILURE(expect_takeover(SteadyClock::now()));
  ASSERT_NO_FATAL_FAILURE(expect_membership_goes_on());
  finish();
}

/// In the middle of a view change: a worker dies with the leader.
TEST_F(StandbyTest, TakesOverAViewChange) {
  ASSERT_NO_FATAL_FAILURE(begin());
  job_->workers()[1]->kill();
  job_->signal_server(0, SIGKILL);
  ASSERT_TRUE(job_->leads(1, 1)) << job_->text();
  const auto survivors = job_->but(1);
  ASSERT_TRUE(FaultJob::await_steps(survivors, 20)) << job_->text();
  EXPECT_EQ(survivors.front()->log().steps().back().contributors, survivors.size());
  expect_one_view_per_generation(survivors);
  expect_generations_grow();
  job_->ask_for_the_end();
  expect_end(survivors);
  expect_same_steps(survivors);
  if (HasFailure()) ADD_FAILURE() << job_->text();
}

TEST_F(StandbyTest, AndALossOfAMemberOfEtcd) {
  ASSERT_NO_FATAL_FAILURE(begin());
  etcd_->kill(0);
  ASSERT_NO_FATAL_FAILURE(expect_membership_goes_on());
  // The lead is kept for longer than a lease without that member: no event tells of it.
  std::this_thread::sleep_for(StandbyJob::kLease + milliseconds(500));
  EXPECT_EQ(job_->times_led(1), 0U) << job_->text();
  job_->signal_server(0, SIGKILL);
  ASSERT_NO_FATAL_FAILURE(expect_takeover(SteadyClock::now()));
  ASSERT_NO_FATAL_FAILURE(expect_membership_goes_on());
  finish();
}

/// Two of three members are silent for longer than a lease: no server can lead, and none may.
TEST_F(StandbyTest, NoServerLeadsWithoutAMajorityOfEtcd) {
  ASSERT_NO_FATAL_FAILURE(begin());
  for (const std::size_t member : {std::size_t{1}, std::size_t{2}})
    ::kill(etcd_->pid(member), SIGSTOP);
  ASSERT_TRUE(eventually(kLong, [&] {
    return job_->server_output(0).find("leads job standby no more") != std::string::npos;
  })) << job_->text();
  ASSERT_TRUE(FaultJob::await_steps(job_->workers(), 50)) << job_->text();
  EXPECT_EQ(job_->times_led(1), 0U) << job_->text();
  for (const std::size_t member : {std::size_t{1}, std::size_t{2}})
    ::kill(etcd_->pid(member), SIGCONT);
  ASSERT_TRUE(eventually(kLong, [&] { return job_->times_led(0) + job_->times_led(1) == 2; }))
      << job_->text();
  ASSERT_NO_FATAL_FAILURE(expect_membership_goes_on());
  finish();
}

TEST_F(StandbyTest, ALeaderThatHangsWritesNothingMore) {
  ASSERT_NO_FATAL_FAILURE(begin());
  job_->signal_server(0, SIGSTOP);
  ASSERT_NO_FATAL_FAILURE(expect_takeover(SteadyClock::now()));
  // The workers find the one that leads though their connections to the other still stand.
  ASSERT_NO_FATAL_FAILURE(expect_membership_goes_on());
  const nlohmann::json before = etcd_->entry("elastic/standby/journal");
  job_->signal_server(0, SIGCONT);
  ASSERT_TRUE(eventually(kLong, [&] {
    return job_->server_output(0).find("leads job standby no more") != std::string::npos;
  })) << job_->text();
  ASSERT_TRUE(FaultJob::await_steps(job_->workers(), 20)) << job_->text();
  EXPECT_EQ(etcd_->entry("elastic/standby/journal"), before);
  EXPECT_EQ(job_->times_led(0), 1U);
  ASSERT_NO_FATAL_FAILURE(expect_membership_goes_on());
  finish();
}

/// By hand, or from a copy. The server that leads knows better.
TEST_F(StandbyTest, WritesADeletedJournalAnew) {
  ASSERT_NO_FATAL_FAILURE(begin());
  etcd_->call("/v3/kv/deleterange", {{"key", etcd::to_base64("elastic/standby/journal")}});
  ASSERT_NO_FATAL_FAILURE(expect_membership_goes_on());
  EXPECT_NE(job_->server_output(0).find("deleted the key elastic/standby/journal in etcd"),
            std::string::npos)
      << job_->text();
  EXPECT_EQ(job_->times_led(1), 0U) << job_->text();
  finish();
}

/// An elasticrun without a server of its own, which knows both.
TEST_F(StandbyTest, AgentsFollow) {
  job_->start_server(0);
  ASSERT_TRUE(job_->leads(0, 1)) << job_->text();
  job_->start_server(1);
  Job agent({ELASTICRUN, "--join", job_->addresses(), "--secret-file", job_->secret_file().string(),
             "-np", std::to_string(kWorkers), "--output-dir", job_->folder().string(), FAULT_WORKER,
             "kind=train", "until=" + job_->end_file(), "pause_us=500"},
            job_->folder() / "agent");
  WorkerLog worker(job_->folder() / "worker-0.out");
  const auto steps_on = [&](std::size_t server) {
    const std::size_t before = worker.steps().size();
    return eventually(kLong, [&] {
      worker.refresh();
      return worker.steps().size() > before + 20 && job_->leads(server, 1);
    });
  };
  ASSERT_TRUE(steps_on(0)) << agent.output() << job_->text();
  job_->signal_server(0, SIGKILL);
  ASSERT_TRUE(steps_on(1)) << agent.output() << job_->text();
  EXPECT_TRUE(eventually(kLong,
                         [&] {
                           return control({"remove", "0"}) == 0;
                         }))
      << control_output() << job_->text();
  job_->ask_for_the_end();
  EXPECT_EQ(agent.wait(kLong), 0) << agent.output() << job_->text();
}

/// The standby leads for workers that have not heard the end, and ends as well.
TEST_F(StandbyTest, EndsWithTheJob) {
  job_.emplace(etcd_->store(), kWorkers, 2, std::vector<std::string>{"--exit-when-done"});
  ASSERT_NO_FATAL_FAILURE(begin());
  finish();
  EXPECT_EQ(job_->server_exit(0), 0) << job_->text();
  EXPECT_EQ(job_->server_exit(1), 0) << job_->text();
}

/// A worker that comes later is refused, as by the server that saw the end.
TEST_F(StandbyTest, OpensNoSecondTraining) {
  ASSERT_NO_FATAL_FAILURE(begin());
  finish();
  job_->signal_server(0, SIGKILL);
  ASSERT_TRUE(job_->leads(1, 1)) << job_->text();
  FaultWorker& late = job_->start_worker();
  EXPECT_TRUE(eventually(kLong, [&] {
    return late.log().text().find("done before this worker came") != std::string::npos;
  })) << job_->text();
}

/// One that was started again after the end, while the server lived that saw it.
TEST_F(StandbyTest, ThatIsStartedAfterTheEndOpensNoSecondTrainingEither) {
  ASSERT_NO_FATAL_FAILURE(begin());
  finish();
  job_->signal_server(1, SIGKILL);
  ASSERT_TRUE(job_->server_exit(1)) << job_->text();
  job_->start_server(1);
  // It has to see the leader live for longer than a dead one's lease may stand.
  std::this_thread::sleep_for(2 * StandbyJob::kLease + std::chrono::seconds(2));
  job_->signal_server(0, SIGKILL);
  ASSERT_TRUE(job_->leads(1, 1)) << job_->text();
  FaultWorker& late = job_->start_worker();
  EXPECT_TRUE(eventually(kLong, [&] {
    return late.log().text().find("done before this worker came") != std::string::npos;
  })) << job_->text();
}

/// After an end all servers are started again for another training. A standby takes it over before
/// its first view.
TEST_F(StandbyTest, TakesOverAnotherTraining) {
  ASSERT_NO_FATAL_FAILURE(begin());
  finish();
  ASSERT_NO_FATAL_FAILURE(end_servers(SIGTERM));
  job_->start_server(0);
  ASSERT_TRUE(job_->leads(0, 1)) << job_->text();
  job_->start_server(1);
  ASSERT_TRUE(eventually(kLong, [&] {
    return job_->server_output(1).find("waits as a standby") != std::string::npos;
  })) << job_->text();
  job_->signal_server(0, SIGKILL);
  ASSERT_TRUE(job_->leads(1, 1)) << job_->text();
  expect_another_training();
}

/// The servers are killed after the end, and started again while etcd still has the leader's lease.
TEST_F(StandbyTest, ALeaseThatOutlivesItsServerKeepsNoTrainingAway) {
  ASSERT_NO_FATAL_FAILURE(begin());
  finish();
  ASSERT_NO_FATAL_FAILURE(end_servers(SIGKILL));
  job_->start_server(0);
  expect_another_training();
}

/// `ctl stop` is acknowledged while a worker is stopped, so no boundary is reached before the
/// leader dies.
TEST_F(StandbyTest, StopsWhereTheServerBeforeHadPromisedTo) {
  ASSERT_NO_FATAL_FAILURE(begin());
  job_->workers()[2]->signal(SIGSTOP);
  EXPECT_EQ(control({"stop"}), 0) << control_output();
  EXPECT_NE(control_output().find("at the next step boundary"), std::string::npos);
  job_->signal_server(0, SIGKILL);
  job_->workers()[2]->signal(SIGCONT);
  for (FaultWorker* worker : job_->workers()) {
    EXPECT_TRUE(FaultJob::await_line(*worker, "outcome stopped")) << job_->text();
  }
}

TEST_F(StandbyTest, TakesOverAtOnceFromALeaderThatIsToldToEnd) {
  ASSERT_NO_FATAL_FAILURE(begin());
  const auto told = SteadyClock::now();
  job_->signal_server(0, SIGTERM);
  ASSERT_TRUE(job_->leads(1, 1)) << job_->text();
  EXPECT_LT(SteadyClock::now() - told, StandbyJob::kLease);
  ASSERT_NO_FATAL_FAILURE(expect_membership_goes_on());
  finish();
}

}  // namespace
}  // namespace elastic::testing
