// The C interface: programs in C99, and Python's ctypes, under elasticrun.
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/launched_job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kLong = milliseconds(30000) * kHangFactor;

/// The lines of the workers that begin with `word`, without the launcher's mark.
std::multiset<std::string> lines(const std::string& output, const std::string& word) {
  std::multiset<std::string> result;
  std::istringstream text(output);
  for (std::string line; std::getline(text, line);) {
    const auto at = line.find(word);
    if (at != std::string::npos) result.insert(line.substr(at));
  }
  return result;
}

class CTrainer : public ::testing::TestWithParam<std::string> {};

TEST_P(CTrainer, AgreesOnEveryResultAndOnTheState) {
  LaunchedJob job;
  const std::string checkpoint = job.folder() / "checkpoint";
  job.start(
      {"-np", "3", "--min-np", "3", "--max-restarts", "1", C_TRAINER, GetParam(), checkpoint});
  ASSERT_EQ(job.launcher().wait(kLong), 0) << job.output();
  const auto states = lines(job.output(), "state ");
  EXPECT_EQ(states.size(), 3U) << job.output();
  EXPECT_EQ(std::set<std::string>(states.begin(), states.end()).size(), 1U) << job.output();
  EXPECT_THAT(*states.begin(), HasSubstr("state 60 "));
  EXPECT_TRUE(std::filesystem::exists(checkpoint));
}

INSTANTIATE_TEST_SUITE_P(Slot1, CTrainer, ::testing::Values("stay", "die", "rejoin"),
                         [](const auto& param) { return param.param; });

TEST(CInterface, SaysWhatWasWrong) {
  LaunchedJob job;
  job.start({"-np", "1", C_MISTAKES, job.folder()});
  EXPECT_EQ(job.launcher().wait(kLong), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("all mistakes were told"));
}

TEST(CInterface, ComputesWithGradientsAsCppDoes) {
  LaunchedJob job;
  job.start({"-np", "2", C_GRADIENTS});
  EXPECT_EQ(job.launcher().wait(kLong), 0) << job.output();
  EXPECT_EQ(lines(job.output(), "gradients are right").size(), 2U) << job.output();
}

TEST(CInterface, HasCollectivesWithBlocksAndAsynchronousOnes) {
  LaunchedJob job;
  job.start({"-np", "3", C_COLLECTIVES});
  EXPECT_EQ(job.launcher().wait(kLong), 0) << job.output();
  EXPECT_EQ(lines(job.output(), "collectives are right").size(), 3U) << job.output();
}

TEST(CInterface, HasStepsAndReductionsThatGather) {
  LaunchedJob job;
  job.start({"-np", "3", C_STEPS});
  EXPECT_EQ(job.launcher().wait(kLong), 0) << job.output();
  EXPECT_EQ(lines(job.output(), "steps are right").size(), 3U) << job.output();
}

TEST(CInterface, CommitsAStepTogetherThroughADeath) {
  LaunchedJob job;
  job.start({"-np", "3", "--min-np", "1", "--max-restarts", "0", C_STEPS, "die"});
  (void)job.launcher().wait(kLong);
  EXPECT_EQ(lines(job.output(), "steps are right").size(), 2U) << job.output();
}

TEST(CInterface, HasGroupsAndMessages) {
  LaunchedJob job;
  job.start({"-np", "5", C_GROUPS});
  EXPECT_EQ(job.launcher().wait(kLong), 0) << job.output();
  EXPECT_EQ(lines(job.output(), "groups are right").size(), 5U) << job.output();
}

TEST(CInterface, HasGroupsOfAContext) {
  LaunchedJob job;
  job.start({"-np", "4", C_GROUPS, "context"});
  EXPECT_EQ(job.launcher().wait(kLong), 0) << job.output();
  EXPECT_EQ(lines(job.output(), "groups are right").size(), 4U) << job.output();
}

TEST(CInterface, GroupsAndMessagesLoseAWorker) {
  LaunchedJob job;
  job.start({"-np", "5", "--min-np", "1", "--max-restarts", "0", C_GROUPS, "die"});
  (void)job.launcher().wait(kLong);
  EXPECT_EQ(lines(job.output(), "groups are right").size(), 4U) << job.output();
}

TEST(CInterface, EndsAWaitWhenItsCheckSaysSo) {
  LaunchedJob job;
  const std::string file = job.folder() / "interrupted";
  job.start({"-np", "2", "--max-restarts", "0", C_GRADIENTS, file});
  (void)job.launcher().wait(kLong);
  EXPECT_EQ(lines(job.output(), "interrupted").size(), 1U) << job.output();
  EXPECT_EQ(lines(job.output(), "went on").size(), 1U) << job.output();
}

#ifdef REGRESSION
TEST(CInterface, TheExampleFitsItsLine) {
  LaunchedJob job;
  job.start({"-np", "2", REGRESSION, "1000"});
  ASSERT_EQ(job.launcher().wait(kLong), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("y = 3.0000"));
}
#endif

#ifdef PYTHON
TEST(CInterface, IsLoadedByCtypes) {
  LaunchedJob job;
  job.start({"-np", "2", PYTHON, CTYPES_WORKER, LIBRARY});
  ASSERT_EQ(job.launcher().wait(kLong), 0) << job.output();
  for (const char* rank : {"0", "1"}) {
    EXPECT_THAT(job.output(), HasSubstr("rank " + std::string(rank) + " of 2 [2.0, 20.0, 200.0]"));
  }
}
#endif

}  // namespace
}  // namespace elastic::testing
