// The example sharded_training: workers with parts of the momentum, of which one dies in the middle
// of a step, end with the parameters of a process that trains alone.
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kParameters = 287;

std::vector<double> parameters_in(const std::string& output) {
  std::vector<double> parameters;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("parameter ");
    if (at != std::string::npos) parameters.push_back(std::stod(line.substr(at + 10)));
  }
  return parameters;
}

class ShardedTraining : public ::testing::Test {
 protected:
  std::string run(const std::vector<std::string>& command) {
    Job job(command, folder_.path() / ("output" + std::to_string(++runs_)),
            {"XDG_RUNTIME_DIR=" + folder_.path().string(), "ELASTIC_LOG_LEVEL=info"});
    const auto status = job.wait(std::chrono::seconds(60) * kHangFactor);
    EXPECT_EQ(status, 0) << job.output();
    return job.output();
  }
  std::string run_job(const std::vector<std::string>& launching,
                      const std::vector<std::string>& training) {
    std::vector<std::string> command{ELASTICRUN};
    command.insert(command.end(), launching.begin(), launching.end());
    command.emplace_back(SHARDED_TRAINING);
    command.insert(command.end(), training.begin(), training.end());
    return run(command);
  }
  void expect_right(const std::string& output) {
    const std::vector<double> alone = parameters_in(run({SHARDED_TRAINING, "--alone"}));
    const std::vector<double> parameters = parameters_in(output);
    ASSERT_EQ(alone.size(), kParameters);
    ASSERT_EQ(parameters.size(), kParameters) << output;
    for (std::size_t i = 0; i < kParameters; ++i) {
      ASSERT_NEAR(parameters[i], alone[i], 1e-9) << "parameter " << i;
    }
  }

  const ScratchFolder folder_;
  int runs_ = 0;
};

TEST_F(ShardedTraining, GivesTheParametersOfOneProcess) {
  expect_right(run_job({"-np", "3"}, {}));
}

TEST_F(ShardedTraining, GoesOnWithTheMomentumOfADeadWorker) {
  for (const char* const die : {"2:20", "0:0", "3:59"}) {
    const std::string output =
        run_job({"-np", "4", "--min-np", "1", "--max-restarts", "0"}, {"--die", die});
    EXPECT_THAT(output, HasSubstr("died of signal 9"));
    EXPECT_THAT(output, Not(HasSubstr("begins at zero")));
    expect_right(output);
  }
}

/// Without the worker that replaces the dead one there are too few.
TEST_F(ShardedTraining, SharesTheMomentumWithAWorkerThatJoins) {
  const std::string output =
      run_job({"-np", "3", "--min-np", "3", "--max-restarts", "1"}, {"--die", "1:5"});
  EXPECT_THAT(output, HasSubstr("died of signal 9"));
  EXPECT_THAT(output, HasSubstr(" joined"));
  expect_right(output);
}

}  // namespace
}  // namespace elastic::testing
