// Workers that come and go while a training runs: real processes under elasticrun.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <signal.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/trainer_job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// Far more than anything here takes, on a busy machine too.
constexpr milliseconds kLong = milliseconds(20000) * kHangFactor;

/// How many workers ended with `outcome`. All that finished must have the same state.
int count(const TrainerJob& job, const std::string& outcome) {
  int result = 0;
  std::set<std::string> states;
  for (const auto& [pid, told] : job.told("result")) {
    if (!told.starts_with(outcome)) continue;
    ++result;
    states.insert(told);
  }
  EXPECT_LE(states.size(), 1U) << "the state differs between workers";
  return result;
}

/// Committed steps when the worker entered the training.
int steps_at_entry(const TrainerJob& job, pid_t pid) {
  const std::string told = job.told("entered")[pid];
  return std::atoi(told.substr(told.find(' ') + 1).c_str());
}

bool gone(pid_t pid) {
  return eventually(kLong, [pid] { return ::kill(pid, 0) != 0; });
}

TEST(ElasticTraining, WorkerThatIsAddedReceivesTheState) {
  TrainerJob job({"-np", "2", "--max-np", "3", "--max-restarts", "0"});
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  ASSERT_TRUE(job.control({"add", "1"}));
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  EXPECT_GT(steps_at_entry(job, job.pid(2)), 0);
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(count(job, "finished"), 3) << job.output();
}

TEST(ElasticTraining, TwoWorkersAreAddedAtOnce) {
  TrainerJob job({"-np", "2", "--max-np", "4", "--max-restarts", "0"}, "",
                 {"ELASTIC_TRANSPORT=tcp"});
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  ASSERT_TRUE(job.control({"add", "2"}));
  ASSERT_TRUE(job.wait_until_trained(4)) << job.output();
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(count(job, "finished"), 4) << job.output();
}

TEST(ElasticTraining, WorkerThatIsRemovedIsToldAndTheOthersGoOn) {
  TrainerJob job({"-np", "3", "--max-restarts", "0"});
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  ASSERT_TRUE(job.control({"remove", "1"}));
  ASSERT_TRUE(job.wait_until_ended(1)) << job.output();
  EXPECT_THAT(job.told("result")[job.pid(1)], HasSubstr("removed")) << job.output();
  EXPECT_TRUE(gone(job.pid(1)));
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(count(job, "finished"), 2) << job.output();
}

TEST(ElasticTraining, RemovingARankThatIsNotThereIsRefused) {
  TrainerJob job({"-np", "1", "--max-restarts", "0"});
  ASSERT_TRUE(job.wait_until_trained(1)) << job.output();
  std::string answer;
  EXPECT_FALSE(job.control({"remove", "7"}, &answer));
  EXPECT_THAT(answer, HasSubstr("7"));
  EXPECT_EQ(job.finish(), 0) << job.output();
}

TEST(ElasticTraining, SigtermStopsTheJobAtAStepBoundary) {
  TrainerJob job({"-np", "3"});
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  ::kill(job.launcher().pid(), SIGTERM);
  const auto status = job.launcher().wait(kLong);
  ASSERT_TRUE(status.has_value()) << "hangs\n" << job.output();
  EXPECT_EQ(*status, 1);
  EXPECT_THAT(job.output(), HasSubstr("stopped by SIGTERM"));
  EXPECT_EQ(count(job, "stopped"), 3) << job.output();
  for (int slot = 0; slot < 3; ++slot) EXPECT_TRUE(gone(job.pid(slot)));
}

TEST(ElasticTraining, ControlCanStopTheJob) {
  TrainerJob job({"-np", "2"});
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  ASSERT_TRUE(job.control({"stop"}));
  EXPECT_TRUE(job.launcher().wait(kLong).has_value()) << "hangs\n" << job.output();
  EXPECT_EQ(count(job, "stopped"), 2) << job.output();
}

TEST(ElasticTraining, KilledWorkerIsReplacedByAJoiner) {
  TrainerJob job({"-np", "3", "--max-restarts", "1"});
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  const pid_t victim = job.pid(1);
  ::kill(victim, SIGKILL);
  ASSERT_TRUE(job.wait_until_trained(4)) << job.output();
  EXPECT_NE(job.pid(1), victim);
  EXPECT_GT(steps_at_entry(job, job.pid(1)), 0);
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(count(job, "finished"), 3) << job.output();
}

class DeathInSynchronisation : public ::testing::TestWithParam<const char*> {};

/// Two members and a joiner; one of the three dies while the joiner is synchronised and is
/// replaced.
TEST_P(DeathInSynchronisation, IsSurvived) {
  TrainerJob job({"-np", "2", "--max-np", "3", "--max-restarts", "1"}, GetParam());
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  ASSERT_TRUE(job.control({"add", "1"}));
  ASSERT_TRUE(job.wait_until_trained(std::string(GetParam()) == "donor-save" ? 4 : 3))
      << job.output();
  EXPECT_TRUE(std::filesystem::exists(job.folder() / "died"));
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(count(job, "finished"), 3) << job.output();
}

INSTANTIATE_TEST_SUITE_P(Moments, DeathInSynchronisation,
                         ::testing::Values("joiner-save", "joiner-load", "donor-save"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(BelowMinimum, GoesOnWhenAWorkerIsAddedInTime) {
  TrainerJob job({"-np", "3", "--min-np", "3", "--max-restarts", "0"});
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  ::kill(job.pid(2), SIGKILL);
  std::string status;
  ASSERT_TRUE(eventually(kLong, [&] {
    return job.control({"status"}, &status) && status.find("world size 2") != std::string::npos;
  })) << status;
  ASSERT_TRUE(job.control({"add", "1"}));
  ASSERT_TRUE(job.wait_until_trained(4)) << job.output();
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(count(job, "finished"), 3) << job.output();
}

/// With a server of its own, because there the waiting time can be set.
TEST(BelowMinimum, EndsInAClearErrorWhenNobodyComes) {
  const ScratchFolder folder;
  const std::string path = folder.path().string();
  const auto secret = folder.path() / "secret";
  write_secret(secret, '7');
  Job server({ELASTIC_RENDEZVOUS, "--np", "3", "--min-np", "3", "--job", "few", "--secret-file",
              secret.string(), "--port-file", path + "/port", "--below-minimum-timeout-ms", "1000",
              "--exit-when-done"},
             path + "/server.out");
  std::string address;
  ASSERT_TRUE(eventually(kLong, [&] {
    const std::string told = read_file(path + "/port");
    const auto host = told.find("127.0.0.1:");
    if (host == std::string::npos) return false;
    address = told.substr(host, told.find('"', host) - host);
    return told.find('}') != std::string::npos;
  })) << server.output();
  std::vector<std::unique_ptr<Job>> workers;
  for (int slot = 0; slot < 3; ++slot) {
    workers.push_back(std::make_unique<Job>(
        std::vector<std::string>{ELASTIC_TRAINER, path}, path + "/worker.out",
        std::vector<std::string>{"ELASTIC_RENDEZVOUS=" + address, "ELASTIC_JOB=few",
                                 "ELASTIC_SECRET_FILE=" + secret.string(),
                                 "ELASTIC_SLOT=" + std::to_string(slot)}));
  }
  const auto told = [&](const std::string& what, pid_t pid) {
    return read_file(path + "/" + what + "." + std::to_string(pid));
  };
  for (const auto& worker : workers) {
    ASSERT_TRUE(eventually(kLong, [&] {
      return !told("trained", worker->pid()).empty() || worker->wait(milliseconds(2)).has_value();
    }));
    ASSERT_NE(told("trained", worker->pid()), "") << read_file(path + "/worker.out");
  }
  ::kill(workers[1]->pid(), SIGKILL);
  for (const int survivor : {0, 2}) {
    Job& worker = *workers[static_cast<std::size_t>(survivor)];
    EXPECT_EQ(worker.wait(kLong), 3) << read_file(path + "/worker.out");
    EXPECT_THAT(told("result", worker.pid()), HasSubstr("only 2 workers are left, min_np is 3"));
  }
  EXPECT_TRUE(server.wait(kLong).has_value()) << server.output();
}

}  // namespace
}  // namespace elastic::testing
