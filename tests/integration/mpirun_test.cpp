// Programs as they are, started by mpirun on one machine: rank 0 starts the server, and a death is
// survived where mpirun is told not to end the job.
#include <cstdlib>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/job.hpp"
#include "integration/open_mpi.hpp"
#include "rendezvous/launcher/job_file.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class MpirunTest : public ::testing::Test {
 protected:
  std::vector<std::string> mpirun(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{MPIRUN, "--oversubscribe"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
  }
  /// Processes know by XDG_RUNTIME_DIR that they are of this test.
  std::vector<std::string> environment() const {
    std::vector<std::string> variables = open_mpi_settings();
    variables.push_back("XDG_RUNTIME_DIR=" + folder_.path().string());
    return variables;
  }
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }

  /// Whether any process of this test is left, the server above all.
  bool any_process_left() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string variables = read_file(entry.path() / "environ");
      if (std::atoi(entry.path().filename().c_str()) > 0 &&
          variables.find("XDG_RUNTIME_DIR=" + folder_.path().string()) != std::string::npos) {
        return true;
      }
    }
    return false;
  }
  void expect_no_process_left() const {
    EXPECT_TRUE(eventually(milliseconds(20000), [this] { return !any_process_left(); }));
  }

  std::string launcher_folder() const { return file("elastic-" + std::to_string(::getuid())); }

  ScratchFolder folder_;
};

TEST_F(MpirunTest, RunsAProgramAsItIs) {
  Job job(mpirun({"-np", "4", HELLO_ALLREDUCE}), file("output"), environment());
  EXPECT_EQ(job.wait(milliseconds(40000)), 0) << job.output();
  for (const char* rank : {"0", "1", "2", "3"}) {
    EXPECT_THAT(job.output(),
                HasSubstr("rank " + std::string(rank) + ": the sum over 4 workers is 10"));
  }
  expect_no_process_left();
}

TEST_F(MpirunTest, RunsAProgramThatEncryptsWithAServerThatDoes) {
  std::vector<std::string> with = environment();
  with.insert(with.end(), {"ELASTIC_ENCRYPT=1", "ELASTIC_TRANSPORT=tcp"});
  Job job(mpirun({"-np", "3", HELLO_ALLREDUCE}), file("output"), with);
  EXPECT_EQ(job.wait(milliseconds(40000)), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("rank 2: the sum over 3 workers is 6"));
  expect_no_process_left();
}

TEST_F(MpirunTest, WithoutALauncherAProgramIsAWorldOfOne) {
  Job job({HELLO_ALLREDUCE}, file("output"), environment());
  EXPECT_EQ(job.wait(milliseconds(40000)), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("rank 0: the sum over 1 workers is 1"));
  expect_no_process_left();
}

/// The server would wait 60 s for a first worker.
TEST_F(MpirunTest, AServerEndsSoonWhoseStarterCannotBeginTheJob) {
  std::vector<std::string> with = environment();
  with.push_back("ELASTIC_BIND=192.0.2.1");  // no address of this machine
  Job job({HELLO_ALLREDUCE}, file("output"), with);
  EXPECT_NE(job.wait(milliseconds(40000)), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("192.0.2.1"));
  expect_no_process_left();
}

/// Rank 0 waits for the other of two tasks, and dies.
TEST_F(MpirunTest, AServerEndsSoonWhoseStarterDiesBeforeTheJobBegins) {
  std::vector<std::string> with = environment();
  with.insert(with.end(), {"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_NTASKS=2", "SLURM_NNODES=1",
                           "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NODEID=0"});
  Job job({HELLO_ALLREDUCE}, file("output"), with);
  const auto server_is_there = [this] {
    return !launcher::running_jobs(launcher_folder()).empty();
  };
  ASSERT_TRUE(eventually(milliseconds(30000), server_is_there)) << job.output();
  ::kill(job.pid(), SIGKILL);
  EXPECT_TRUE(eventually(milliseconds(8000), [this] { return !any_process_left(); }));
}

class MpirunKillTest : public MpirunTest, public ::testing::WithParamInterface<int> {};

TEST_P(MpirunKillTest, SurvivorsAgreeOnEverySum) {
  const int victim = GetParam();
  Job job(mpirun({"--enable-recovery", "-np", "4", DIGIT_STREAM, "mixed", "400", "131072", "5",
                  folder_.path().string()}),
          file("output"), environment());
  const auto log = [&](int slot) { return read_file(file(std::to_string(slot))); };
  ASSERT_TRUE(eventually(milliseconds(30000), [&] {
    return log(victim).size() > 100 || job.wait(milliseconds(2)).has_value();
  })) << job.output();
  const pid_t pid = std::atoi(read_file(file("pid." + std::to_string(victim))).c_str());
  ASSERT_GT(pid, 1) << job.output();
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(job.wait(milliseconds(60000)).has_value()) << "hangs\n" << job.output();
  std::string agreed;
  for (int slot = 0; slot < 4; ++slot) {
    if (slot == victim) continue;
    EXPECT_THAT(log(slot), EndsWith("end\n")) << "slot " << slot << "\n" << job.output();
    if (agreed.empty()) agreed = log(slot);
    EXPECT_EQ(log(slot), agreed) << "slot " << slot << " had other sums";
  }
  EXPECT_THAT(log(victim), ::testing::Not(EndsWith("end\n"))) << "killed too late";
  expect_no_process_left();
}

INSTANTIATE_TEST_SUITE_P(Victims, MpirunKillTest, ::testing::Values(0, 2));

}  // namespace
}  // namespace elastic::testing
