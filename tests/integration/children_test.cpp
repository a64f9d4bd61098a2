// Workers that make children, by real processes under elasticrun.
#include <fstream>
#include <signal.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;

class ChildrenTest : public ::testing::Test {
 protected:
  Job job(const std::string& mode, const std::vector<std::string>& options,
          std::vector<std::string> environment) const {
    std::vector<std::string> command{ELASTICRUN, "-np", "2", "--max-restarts", "0"};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {FORKING_RANKS, mode, scratch_.path().string()});
    environment.push_back("XDG_RUNTIME_DIR=" + scratch_.path().string());
    return Job(command, scratch_.path() / "output", environment);
  }

  ScratchFolder scratch_;
};

class ChildrenInTrainingTest : public ChildrenTest,
                               public ::testing::WithParamInterface<std::vector<std::string>> {};

TEST_P(ChildrenInTrainingTest, DoNotTouchTheWorkersJob) {
  Job training = job("train", {}, GetParam());
  const auto status = training.wait(milliseconds(60000) * kHangFactor);
  EXPECT_EQ(status.value_or(-1), 0) << training.output();
}

INSTANTIATE_TEST_SUITE_P(Transports, ChildrenInTrainingTest,
                         ::testing::Values(std::vector<std::string>{"ELASTIC_TRANSPORT=shm"},
                                           std::vector<std::string>{"ELASTIC_TRANSPORT=tcp",
                                                                    "ELASTIC_ENCRYPT=1"}),
                         [](const auto& tested) { return tested.index == 0 ? "shm" : "tls"; });

/// Children do not inherit the worker's sockets: with them its peers would wait until its eviction.
class OrphansTest : public ChildrenTest {
 protected:
  ~OrphansTest() override {
    std::ifstream pids(scratch_.path() / "orphans");
    for (pid_t pid = 0; pids >> pid;) ::kill(pid, SIGKILL);
  }
};

TEST_F(OrphansTest, OfAKilledWorkerDoNotHideItsDeath) {
  Job orphaned = job("orphans", {"--min-np", "1", "--evict-after-ms", "60000"}, {});
  EXPECT_TRUE(eventually(milliseconds(30000) * kHangFactor, [&] {
    return orphaned.output().find("alone") != std::string::npos;
  })) << orphaned.output();
}

class SecretTest : public ChildrenTest {
 protected:
  std::string output_of(const std::string& mode) const {
    Job worker({ELASTICRUN, "-np", "1", "--max-np", "2", SECOND_CONTEXT, mode},
               scratch_.path() / "output", {"XDG_RUNTIME_DIR=" + scratch_.path().string()});
    EXPECT_TRUE(worker.wait(milliseconds(30000) * kHangFactor)) << worker.output();
    return worker.output();
  }
};

TEST_F(SecretTest, IsThereForASecondContextAndItsDescriptorIsReadOnce) {
  EXPECT_THAT(output_of("second"), ::testing::HasSubstr("a second context; the file is open"));
}

TEST_F(SecretTest, IsNotThereForAProgramThatAWorkerExecutesWhichSaysSo) {
  EXPECT_THAT(output_of("exec"), ::testing::ContainsRegex(
                                     "error: .*there is no descriptor [0-9]+ .ELASTIC_SECRET_FD."));
}

}  // namespace
}  // namespace elastic::testing
