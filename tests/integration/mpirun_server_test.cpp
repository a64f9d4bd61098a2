// Workers that were given no server: under a real mpirun, with the variables of srun, and alone.
#include <memory>
#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/job.hpp"
#include "integration/open_mpi.hpp"
#include "rendezvous/client/control_client.hpp"
#include "rendezvous/launcher/job_file.hpp"
#include "rendezvous/launcher/private_folder.hpp"

namespace elastic::testing {
namespace {

constexpr std::chrono::milliseconds kTimeLimit{30000};

class MpirunServerTest : public ::testing::Test {
 protected:
  // Servers end by themselves when their workers are gone, but later than a test wants to wait.
  ~MpirunServerTest() override {
    for (const auto& job : launcher::running_jobs(folder())) ::kill(job.owner.pid, SIGTERM);
  }

  std::string folder() const {
    return (scratch_.path() / ("elastic-" + std::to_string(::getuid()))).string();
  }
  int run(std::vector<std::string> command) {
    command.insert(command.end(), {SERVER_SEEKER, scratch_.path().string()});
    Job job(command, scratch_.path() / "output", environment(open_mpi_settings()));
    const int code = job.wait(kTimeLimit).value_or(-1);
    output_ = job.output();
    return code;
  }
  std::vector<std::string> environment(std::vector<std::string> variables) const {
    variables.push_back("XDG_RUNTIME_DIR=" + scratch_.path().string());
    variables.push_back("PATH=" + path());
    return variables;
  }
  /// A task of a Slurm step of two, as srun would start it.
  std::unique_ptr<Job> task(const std::string& rank) const {
    return std::make_unique<Job>(
        std::vector<std::string>{SERVER_SEEKER, scratch_.path().string()},
        scratch_.path() / ("output." + rank),
        environment({"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_NTASKS=2", "SLURM_NNODES=1",
                     "SLURM_PROCID=" + rank, "SLURM_LOCALID=" + rank, "SLURM_NODEID=0"}));
  }
  static std::string path() {
    return std::filesystem::path(ELASTIC_RENDEZVOUS_PROGRAM).parent_path().string() +
           ":/usr/local/bin:/usr/bin:/bin";
  }
  std::string found_by(int rank) const { return read_file(scratch_.path() / std::to_string(rank)); }

  ScratchFolder scratch_;
  std::string output_;
};

TEST_F(MpirunServerTest, TheWorkersOfOneMpirunMeetAtTheServerOfRankZero) {
  ASSERT_EQ(run({"mpirun", "--oversubscribe", "-np", "3"}), 0) << output_;
  EXPECT_THAT(found_by(0), ::testing::StartsWith("3 127.0.0.1:"));
  EXPECT_EQ(found_by(1), found_by(0));
  EXPECT_EQ(found_by(2), found_by(0));
}

TEST_F(MpirunServerTest, WorkersBehindAShellMeetToo) {
  ASSERT_EQ(
      run({"mpirun", "--oversubscribe", "-np", "2", "/bin/sh", "-c", "\"$0\" \"$@\"; exit $?"}), 0)
      << output_;
  EXPECT_THAT(found_by(0), ::testing::StartsWith("2 "));
  EXPECT_EQ(found_by(1), found_by(0));
}

TEST_F(MpirunServerTest, TheTasksOfASlurmStepMeetAtTheServerOfRankZero) {
  const auto one = task("1");
  const auto zero = task("0");
  EXPECT_EQ(zero->wait(kTimeLimit), 0) << zero->output();
  EXPECT_EQ(one->wait(kTimeLimit), 0) << one->output();
  EXPECT_THAT(found_by(0), ::testing::StartsWith("2 127.0.0.1:"));
  EXPECT_EQ(found_by(1), found_by(0));
}

TEST_F(MpirunServerTest, AServerRemovesItsRecordAtTheEnd) {
  const auto one = task("1");
  const auto zero = task("0");
  ASSERT_EQ(zero->wait(kTimeLimit), 0) << zero->output();
  ASSERT_EQ(one->wait(kTimeLimit), 0) << one->output();
  const auto jobs = launcher::running_jobs(folder());
  ASSERT_EQ(jobs.size(), 1U);
  const std::string record = launcher::job_record_path(folder(), jobs[0].job);
  EXPECT_TRUE(std::filesystem::exists(record));
  ::kill(jobs[0].owner.pid, SIGTERM);
  EXPECT_TRUE(eventually(kTimeLimit, [&] { return !std::filesystem::exists(record); }));
}

TEST_F(MpirunServerTest, TheRecordOfAServerThatWasKilledMisleadsNoLaterTask) {
  std::string before;
  for (int launch = 0; launch < 2; ++launch) {
    const auto one = task("1");  // it looks for a server before there is another one
    const auto zero = task("0");
    ASSERT_EQ(zero->wait(kTimeLimit), 0) << zero->output();
    ASSERT_EQ(one->wait(kTimeLimit), 0) << one->output();
    EXPECT_EQ(found_by(1), found_by(0));
    EXPECT_NE(found_by(0), before);
    before = found_by(0);
    const auto jobs = launcher::running_jobs(folder());
    ASSERT_EQ(jobs.size(), 1U);
    ::kill(jobs[0].owner.pid, SIGKILL);
    ASSERT_TRUE(eventually(kTimeLimit, [&] { return !jobs[0].owner.alive(); }));
  }
}

/// As in `srun sh -c "./train; ./evaluate"`: the server of the first lives for a moment longer.
TEST_F(MpirunServerTest, TheServerOfATrainingThatIsOverMisleadsNoLaterTask) {
  auto one = task("1");
  auto zero = task("0");
  ASSERT_EQ(zero->wait(kTimeLimit), 0) << zero->output();
  ASSERT_EQ(one->wait(kTimeLimit), 0) << one->output();
  const std::string before = found_by(0);
  const auto jobs = launcher::running_jobs(folder());
  ASSERT_EQ(jobs.size(), 1U);
  ASSERT_TRUE(rendezvous::request(jobs[0].address, jobs[0].job, jobs[0].secret,
                                  rendezvous::StopRequest{}, kTimeLimit)
                  .ok());
  one = task("1");
  zero = task("0");
  EXPECT_EQ(zero->wait(kTimeLimit), 0) << zero->output();
  EXPECT_EQ(one->wait(kTimeLimit), 0) << one->output();
  EXPECT_NE(found_by(0), before);
  EXPECT_EQ(found_by(1), found_by(0));
}

TEST_F(MpirunServerTest, AProcessThatMayHaveOthersBesideItIsNoJobOfOne) {
  for (const char* variable : {"SLURM_NTASKS=2", "PMIX_RANK=0", "WORLD_SIZE=2"}) {
    EXPECT_EQ(run({"/usr/bin/env", variable}), 1) << variable;
    EXPECT_THAT(output_, ::testing::HasSubstr(std::string(variable).substr(0, 9)));
    EXPECT_THAT(output_, ::testing::HasSubstr("ELASTIC_RENDEZVOUS"));
  }
}

TEST_F(MpirunServerTest, AWorkerAloneIsAJobOfOne) {
  ASSERT_EQ(run({"/usr/bin/env"}), 0) << output_;
  EXPECT_THAT(found_by(0), ::testing::StartsWith("1 127.0.0.1:"));
}

TEST_F(MpirunServerTest, AFileOfAnEndedServerMisleadsNoWorker) {
  launcher::JobRecord stale;
  stale.job = "ended";
  stale.address = "127.0.0.1:1";
  stale.owner = launcher::ProcessIdentity::of_this_process();
  --stale.owner.start_time;  // the number is in use again, by another process
  ASSERT_TRUE(launcher::make_private_folder(folder()).ok());
  ASSERT_TRUE(launcher::write_job_record(folder(), stale).ok());
  EXPECT_FALSE(launcher::find_job_record(folder(), "ended"));
  EXPECT_TRUE(launcher::running_jobs(folder()).empty());
}

}  // namespace
}  // namespace elastic::testing
