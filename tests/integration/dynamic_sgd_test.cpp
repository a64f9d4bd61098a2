// A job whose workers come and die takes the steps that one process takes for all of them.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/job.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kLong{60000};

class DynamicSgd : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  /// The program's output with all workers in one process.
  std::string simulated(std::vector<std::string> options) {
    options.insert(options.begin(), DYNAMIC_SGD);
    options.insert(options.end(), {"--out", path("simulated")});
    Job job(options, path("output"));
    EXPECT_EQ(job.wait(kLong), 0) << job.output();
    return read_file(path("simulated"));
  }

  /// Its output as a job that grows from one worker to `workers` when it asks for them.
  std::string real(int workers, std::vector<std::string> options) {
    const std::vector<std::string> environment{"XDG_RUNTIME_DIR=" + folder_.path().string(),
                                               "ELASTIC_ALGORITHM=one_shot"};
    std::vector<std::string> command{ELASTICRUN,
                                     "-np",
                                     "1",
                                     "--min-np",
                                     "1",
                                     "--max-np",
                                     std::to_string(workers),
                                     "--max-restarts",
                                     "0",
                                     DYNAMIC_SGD,
                                     "--elastic",
                                     "--out",
                                     path("real")};
    command.insert(command.end(), options.begin(), options.end());
    Job job(command, path("log"), environment);
    EXPECT_TRUE(eventually(kLong, [&] {
      return job.output().find("waits for") != std::string::npos || job.wait(milliseconds(5));
    })) << job.output();
    Job add({ELASTICRUN, "ctl", "add", std::to_string(workers - 1)}, path("add"), environment);
    EXPECT_EQ(add.wait(kLong), 0) << add.output() << job.output();
    EXPECT_EQ(job.wait(kLong), 0) << job.output();
    EXPECT_THAT(job.output(), HasSubstr("died of signal 9"));
    return read_file(path("real"));
  }

  std::string error_of(std::vector<std::string> options) {
    options.insert(options.begin(), DYNAMIC_SGD);
    Job job(options, path("errors" + std::to_string(errors_++)));
    EXPECT_EQ(job.wait(kLong), 1) << job.output();
    return job.output();
  }

 private:
  ScratchFolder folder_;
  int errors_ = 0;
};

TEST_F(DynamicSgd, TwoRealWorkersTakeTheStepsOfOneProcess) {
  const std::vector<std::string> options{"--workers", "2",         "--epochs",    "3",
                                         "--grow-at", "1",         "--shrink-at", "2",
                                         "--policy",  "immediate", "--seed",      "3"};
  const std::string expected = simulated(options);
  EXPECT_THAT(expected, HasSubstr("\"workers\":2"));
  EXPECT_EQ(real(2, options), expected);
}

TEST_F(DynamicSgd, ThreeRanksAddedInTheirOrderDoTooAndTwoSurvive) {
  const std::vector<std::string> options{"--workers",   "3", "--epochs",    "3", "--grow-at", "1",
                                         "--shrink-at", "2", "--shrink-to", "2"};
  EXPECT_EQ(real(3, options), simulated(options));
}

TEST_F(DynamicSgd, SaysWhatIsWrong) {
  EXPECT_THAT(error_of({"--grow-at", "0"}), HasSubstr("dynamic_sgd: --grow-at 0, --shrink-at 12"));
  EXPECT_THAT(error_of({"--data", path("none.csv")}), HasSubstr("none.csv: cannot be opened"));
  EXPECT_THAT(error_of({"--momentum", "1"}), HasSubstr("the momentum is 1; give a number"));
  EXPECT_THAT(error_of({"--out", path("none/steps")}), HasSubstr("does the folder exist"));
}

}  // namespace
}  // namespace elastic::testing
