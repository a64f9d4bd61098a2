// --max-job-restarts: a job that has lost all its workers is started again.
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/trainer_job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::milliseconds kTimeLimit = std::chrono::milliseconds(30000) * kHangFactor;

void kill_both(TrainerJob& job) {
  for (const int slot : {0, 1}) ::kill(job.pid(slot), SIGKILL);
}

TEST(JobRestart, AJobWhoseWorkersAreAllLostBeginsAnew) {
  TrainerJob job({"-np", "2", "--max-restarts", "0", "--max-job-restarts", "1"});
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  kill_both(job);
  ASSERT_TRUE(job.wait_until_trained(4)) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("starting the job anew (restart 1 of 1"));
  EXPECT_EQ(job.finish(), 0) << job.output();
}

TEST(JobRestart, NoMoreOftenThanTheOptionSays) {
  TrainerJob job({"-np", "2", "--max-restarts", "0", "--max-job-restarts", "1"});
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  kill_both(job);
  ASSERT_TRUE(job.wait_until_trained(4)) << job.output();
  kill_both(job);
  EXPECT_EQ(job.launcher().wait(kTimeLimit), 1) << job.output();
}

TEST(JobRestart, NotAfterASignal) {
  TrainerJob job({"-np", "2", "--max-job-restarts", "1"});
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  ::kill(job.launcher().pid(), SIGTERM);
  EXPECT_EQ(job.launcher().wait(kTimeLimit), 1);
  EXPECT_THAT(job.output(), Not(HasSubstr("starting the job anew")));
}

TEST(JobRestart, NotAfterAStopRequest) {
  TrainerJob job({"-np", "2", "--max-job-restarts", "1"});
  ASSERT_TRUE(job.wait_until_trained(2)) << job.output();
  EXPECT_TRUE(job.control({"stop"}));
  EXPECT_EQ(job.launcher().wait(kTimeLimit), 0) << job.output();
  EXPECT_THAT(job.output(), Not(HasSubstr("starting the job anew")));
}

TEST(JobRestart, NotBeforeTheJobHasBegun) {
  LaunchedJob job;
  job.start({"-np", "2", "--max-job-restarts", "1", "/bin/false"});
  EXPECT_EQ(job.launcher().wait(kTimeLimit), 1);
  EXPECT_THAT(job.output(), Not(HasSubstr("starting the job anew")));
}

}  // namespace
}  // namespace elastic::testing
