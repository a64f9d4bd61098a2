// libtorch: a trainer through a SIGKILL, and the checks of the headers, under elasticrun.
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/launched_job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

#ifdef LIBTORCH_DIGITS
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kLong = milliseconds(60000) * kHangFactor;

/// The last lines of the workers of a job.
struct Ends {
  std::multiset<std::string> parameters;
  std::multiset<std::string> steps;
  double accuracy = 0;
};

Ends ends_of(const std::string& output) {
  static const std::regex kEnd(
      "accuracy ([0-9.]+) after ([0-9]+) steps of [0-9]+ workers, parameters ([0-9a-f]+)");
  Ends ends;
  for (std::sregex_iterator at(output.begin(), output.end(), kEnd), end; at != end; ++at) {
    ends.accuracy = std::stod((*at)[1]);
    ends.steps.insert((*at)[2]);
    ends.parameters.insert((*at)[3]);
  }
  return ends;
}

/// Trains for 20 epochs, with a death of worker 1 at step 25, in which its gradients travel.
void train(const std::vector<std::string>& options, std::size_t workers_at_the_end) {
  LaunchedJob job;
  std::vector<std::string> command = {"-np", "3"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {LIBTORCH_DIGITS, DIGITS_CSV, "20"});
  job.start(command, {"DIE_RANK=1", "DIE_AT_STEP=25"});
  ASSERT_EQ(job.launcher().wait(kLong), 0) << job.output();
  ASSERT_THAT(job.output(), HasSubstr("worker 1 died of signal 9"));
  const Ends ends = ends_of(job.output());
  EXPECT_EQ(ends.parameters.size(), workers_at_the_end) << job.output();
  EXPECT_EQ(std::set(ends.parameters.begin(), ends.parameters.end()).size(), 1U) << job.output();
  EXPECT_EQ(std::set(ends.steps.begin(), ends.steps.end()).size(), 1U) << job.output();
  EXPECT_GT(ends.accuracy, 0.93) << job.output();
}

TEST(Libtorch, TrainsOnAfterAKill) {
  train({"--max-restarts", "0"}, 2);
}

TEST(Libtorch, AReplacementTakesOverModelAndOptimizer) {
  train({"--min-np", "3", "--max-restarts", "1"}, 3);
}

TEST(Libtorch, ViewsTensorsAveragesGradientsAndKeepsOptimizers) {
  LaunchedJob job;
  job.start({"-np", "3", "--max-restarts", "0", LIBTORCH_CHECK});
  ASSERT_EQ(job.launcher().wait(kLong), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("all checks passed"));
}
#else
TEST(Libtorch, IsTested) {
  GTEST_SKIP() << "libtorch was not found when this was built; Debian has it in libtorch-dev";
}
#endif

}  // namespace
}  // namespace elastic::testing
