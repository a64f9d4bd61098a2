// Workers that come and go while a training runs: real processes under elasticrun.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <signal.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/resetting_proxy.hpp"
#include "integration/trainer_job.hpp"
#include "tests/reserved_port.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(ElasticTraining, JoinerReceivesAVectorThatHasMovedItsElements) {
  TrainerJob job({"-np", "2", "--max-np", "3", "--max-restarts", "0"}, "moved");
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  ASSERT_TRUE(job.control({"add", "1"}));
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(count(job, "finished"), 3) << job.output();
}

TEST(ElasticTraining, WorkerWhoseVectorHasChangedItsSizeEndsWithAnErrorThatNamesIt) {
  TrainerJob job({"-np", "2", "--max-restarts", "0"}, "resized");
  ASSERT_TRUE(job.wait_until_ended(1)) << job.output();
  EXPECT_THAT(job.told("result")[job.pid(1)],
              HasSubstr("entry 'weights' had 5000 elements when it was added and has 5001 now"));
  job.finish();
  EXPECT_EQ(count(job, "finished"), 1) << job.output();
}

TEST(ElasticTraining, WorkerThatIsStoppedForGoodIsNamedAndKilledOnceTheJobIsDone) {
  TrainerJob job({"-np", "3", "--max-restarts", "0", "--exit-seconds", "0.5"});
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  const std::string stopped = std::to_string(job.pid(1));
  ::kill(job.pid(1), SIGSTOP);
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("elasticrun: worker 1 (process " + stopped +
                                      ", stopped) did not exit within 0.5 s after the job was "
                                      "done (--exit-seconds): sending SIGTERM"));
  EXPECT_THAT(job.output(), HasSubstr("ended with 2: worker 1 did not exit within 0.5 s"));
  EXPECT_TRUE(gone(std::atoi(stopped.c_str())));
}

TEST(ElasticTraining, WorkerThatWasGivenUpWhileItWasStoppedIsNotKilledAndComesBack) {
  TrainerJob job({"-np", "3", "--max-restarts", "0"});
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  const auto has_members = [&](const std::string& count) {
    return eventually(kLong, [&] {
      std::string status;
      return job.control({"status", "--json"}, &status) &&
             status.find("\"world_size\":" + count) != std::string::npos;
    });
  };
  const pid_t stopped = job.pid(1);
  ::kill(stopped, SIGSTOP);
  ASSERT_TRUE(has_members("2")) << job.output();
  EXPECT_EQ(::kill(stopped, 0), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("(rank 1), process " + std::to_string(stopped) +
                                      ", was given up: no heartbeat for "));
  ::kill(stopped, SIGCONT);
  ASSERT_TRUE(has_members("3")) << job.output();
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(job.pid(1), stopped);
  EXPECT_EQ(count(job, "finished"), 3) << job.output();
  EXPECT_THAT(job.output(), Not(HasSubstr("killing")));
}

TEST(ElasticTraining, WorkerThatIsStoppedBeforeTheJobBeginsIsInItAllTheSame) {
  TrainerJob job({"-np", "3", "--max-restarts", "0"}, "late");
  const auto waits = [&] {
    std::string status;
    return job.control({"status", "--json"}, &status) &&
           status.find("\"pid\":" + std::to_string(job.pid(0))) != std::string::npos;
  };
  ASSERT_TRUE(eventually(kLong, [&] {
    return std::filesystem::exists(job.folder() / "pid.0") && waits();
  })) << job.output();
  ::kill(job.pid(0), SIGSTOP);
  ASSERT_TRUE(eventually(kLong, [&] { return !waits(); })) << "it was not given up";
  ::kill(job.pid(0), SIGCONT);
  ASSERT_TRUE(eventually(kLong, waits)) << job.output();
  std::ofstream(job.folder() / "come").flush();
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(count(job, "finished"), 3) << job.output();
}

TEST(ElasticTraining, WorkerThatWasGivenUpWhenTheJobIsStoppedIsLeftOut) {
  TrainerJob job({"-np", "3", "--max-restarts", "0"});
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  const pid_t frozen = job.pid(0);
  ::kill(frozen, SIGSTOP);
  ASSERT_TRUE(eventually(kLong, [&] {
    return job.output().find("process " + std::to_string(frozen) + ", was given up") !=
           std::string::npos;
  })) << job.output();
  ASSERT_TRUE(job.control({"stop"}));
  ASSERT_TRUE(job.wait_until_ended(2)) << job.output();
  ::kill(frozen, SIGCONT);
  EXPECT_TRUE(job.launcher().wait(kLong).has_value()) << "hangs\n" << job.output();
  EXPECT_EQ(count(job, "stopped"), 2) << job.output();
  EXPECT_THAT(job.told("result")[frozen], HasSubstr("left")) << job.output();
}

TEST(ElasticTraining, SigtermOnceTheJobIsDoneEndsTheWaitForAWorker) {
  TrainerJob job({"-np", "2", "--max-restarts", "0", "--drain-seconds", "0"});
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  const std::string stopped = std::to_string(job.pid(1));
  ::kill(job.pid(1), SIGSTOP);
  std::ofstream(job.folder() / "finish").flush();
  std::string status;
  ASSERT_TRUE(eventually(kLong, [&] {
    return job.control({"status", "--json"}, &status) &&
           status.find("\"phase\":\"done\"") != std::string::npos;
  })) << status;
  ::kill(job.launcher().pid(), SIGTERM);
  EXPECT_EQ(job.launcher().wait(kLong), 1) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("SIGTERM: the job is over; waiting for "));
  // Worker 0 may be named before it: the job is done as soon as both have said so.
  EXPECT_THAT(job.output(), HasSubstr("worker 1 (process " + stopped + ", stopped)"));
}

TEST(ElasticTraining, WorkerThatStoodStillDoesNotReplaceANewerCheckpoint) {
  TrainerJob job({"-np", "3", "--max-restarts", "0"}, "zombie");
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();  // the others, without slot 0
  const pid_t zombie = job.pid(0);
  const auto checkpoint = job.folder() / "checkpoint";
  const std::string stale = read_file(checkpoint);
  ASSERT_TRUE(eventually(kLong, [&] { return read_file(checkpoint) != stale; })) << job.output();
  ::kill(zombie, SIGCONT);
  ASSERT_TRUE(eventually(kLong, [&] {
    return !job.told("refused").empty() || !job.told("saved").empty();
  })) << job.output();
  EXPECT_THAT(job.told("refused")[zombie], HasSubstr("the job went on without this worker"))
      << job.output();
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();  // it joined again
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(count(job, "finished"), 3) << job.output();
}

TEST(ElasticTraining, TwoWorkersAreAddedAtOnce) {
  TrainerJob job({"-np", "2", "--max-np", "4", "--max-restarts", "0"}, "",
                 {"ELASTIC_TRANSPORT=tcp"});
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  ASSERT_TRUE(job.control({"add", "2"}));
  ASSERT_TRUE(job.wait_until_trained(4)) << job.output();
  const auto began = job.told("began");  // rank and local rank of each, which a joiner has to know
  for (const int slot : {2, 3}) {
    EXPECT_EQ(began.at(job.pid(slot)), "-1 " + std::to_string(slot)) << job.output();
  }
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

/// The members stop at step boundaries for joiners and leavers; another thread's named operations
/// do not, and are in flight then.
TEST(ElasticTraining, NamedOperationsOfAnotherThreadMeetStepBoundaries) {
  TrainerJob job({"-np", "2", "--max-np", "8", "--max-restarts", "0"}, "named");
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  for (std::size_t workers = 3; workers <= 6; ++workers) {
    ASSERT_TRUE(job.control({"add", "1"}));
    ASSERT_TRUE(job.wait_until_trained(workers)) << job.output();
    ASSERT_TRUE(job.control({"remove", "1"}));
    ASSERT_TRUE(job.wait_until_ended(workers - 2)) << job.output();
  }
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(count(job, "error"), 0) << job.output();
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

/// It has no state that a program could save.
TEST(ElasticTraining, AWorkerThatWaitsToJoinWhenTheJobIsStoppedIsLeftOut) {
  TrainerJob job({"-np", "2", "--max-np", "3"}, "held");
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  std::ofstream(job.folder() / "hold") << "";
  ASSERT_TRUE(job.control({"add", "1"}));
  ASSERT_TRUE(eventually(kLong, [&] {
    std::string status;
    return job.control({"status", "--json"}, &status) &&
           status.find(R"("state":"joining")") != std::string::npos;
  })) << job.output();
  ASSERT_TRUE(job.control({"stop"}));
  std::filesystem::remove(job.folder() / "hold");
  EXPECT_TRUE(job.launcher().wait(kLong).has_value()) << "hangs\n" << job.output();
  EXPECT_EQ(count(job, "stopped"), 2) << job.output();
  EXPECT_EQ(count(job, "left"), 1) << job.output();
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

/// The test has a server of its own, because it sets the waiting time.
TEST(BelowMinimum, EndsInAClearErrorWhenNoJoinerComes) {
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
  EXPECT_EQ(server.wait(kLong), 1) << server.output();
  EXPECT_THAT(server.output(), HasSubstr("the job failed: only 2 workers are left"));
}

TEST(ElasticTraining, ASecondTrainingAtTheServerOfAFinishedOneFailsAndSaysSo) {
  const ScratchFolder folder;
  const std::string path = folder.path().string();
  const auto secret = folder.path() / "secret";
  write_secret(secret, '7');
  const ReservedPort port;
  const Job server({ELASTIC_RENDEZVOUS, "--np", "1", "--job", "over", "--secret-file",
                    secret.string(), "--port", std::to_string(port.number())},
                   path + "/server.out");
  std::ofstream(path + "/finish").flush();
  for (const char* which : {"first", "late"}) {
    Job worker({ELASTIC_TRAINER, path}, path + "/" + which,
               {"ELASTIC_RENDEZVOUS=" + port.address(), "ELASTIC_JOB=over",
                "ELASTIC_SECRET_FILE=" + secret.string(), "ELASTIC_SLOT=0"});
    const std::optional<int> code = worker.wait(kLong);
    ASSERT_TRUE(code) << which << worker.output();
    EXPECT_EQ(*code == 0, which == std::string("first")) << which << worker.output();
  }
  EXPECT_THAT(read_file(path + "/late"),
              AllOf(HasSubstr("the job was done before this worker came"),
                    HasSubstr("start a new server for another training")));
}

/// The incarnations of the members, by rank.
std::vector<std::string> incarnations(TrainerJob& job) {
  std::string status;
  EXPECT_TRUE(job.control({"status", "--json"}, &status)) << status;
  std::vector<std::string> found;
  const std::regex field("\"incarnation\":\"([^\"]*)\"");
  for (std::sregex_iterator match(status.begin(), status.end(), field), end; match != end;
       ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

/// Runs the trainer in its own process, so that the launcher knows the trainer's process id.
constexpr const char* kEnv = "/usr/bin/env";

class ControlConnections : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ControlConnections, ThatAreResetCostNeitherAMemberNorAStep) {
  const ReservedPort port;
  ResettingProxy proxy(port.number());
  TrainerJob job({"-np", "3", "--max-restarts", "0", "--port", std::to_string(port.number()), kEnv,
                  "ELASTIC_RENDEZVOUS=" + proxy.address()});
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  const auto members = incarnations(job);
  ASSERT_EQ(members.size(), 3U);
  for (int times = 0; times < 3; ++times) {
    const std::size_t connections = proxy.accepted() + GetParam();
    proxy.reset(GetParam());
    ASSERT_TRUE(eventually(kLong, [&] { return proxy.accepted() >= connections; }));
  }
  EXPECT_EQ(incarnations(job), members) << job.output();
  EXPECT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(count(job, "finished"), 3) << job.output();
  for (int slot = 0; slot < 3; ++slot) {
    EXPECT_EQ(steps_at_entry(job, job.pid(slot)), 0) << "it has entered the training twice";
  }
}

INSTANTIATE_TEST_SUITE_P(OneAndAll, ControlConnections, ::testing::Values(1, 3));

}  // namespace
}  // namespace elastic::testing
