// The times of a step's phases, in a real job.
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/job.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr std::int64_t kSteps = 30;         // as in timed_steps
constexpr std::int64_t kFatalStep = 17;     // as in timed_steps
constexpr std::int64_t kLoading = 5000000;  // as in timed_steps, in nanoseconds

/// The output of a worker.
struct Told {
  struct Step {
    std::int64_t view_change = 0;
    std::int64_t data = 0;
    std::int64_t total = 0;
  };
  std::map<std::int64_t, Step> steps;               // by commits
  std::map<std::int64_t, std::string> comparisons;  // by commits
};

Told read(const std::string& text) {
  Told told;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::int64_t commits = 0;
    if (line.starts_with("compared ")) {
      std::string word;
      words >> word >> commits;
      std::getline(words, told.comparisons[commits]);
    } else {
      words >> commits;
      Told::Step& step = told.steps[commits];
      words >> step.view_change >> step.data >> step.total;
    }
  }
  return told;
}

/// The numbers in a comparison: the slowest rank, then the ranks' data times.
std::vector<std::int64_t> numbers(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::int64_t> result;
  for (std::int64_t number = 0; words >> number;) result.push_back(number);
  return result;
}

TEST(StepTimes, TellLoadingFromChangesOfTheViewAndNameTheSlowest) {
  const ScratchFolder folder;
  const std::string path = folder.path().string();
  Job job({ELASTICRUN, "-np", "3", "--min-np", "1", "--max-restarts", "0", TIMED_STEPS, path},
          path + "/output",
          {"XDG_RUNTIME_DIR=" + path, "ELASTIC_COMPARE_STEPS=5", "ELASTIC_LOG_LEVEL=info"});
  ASSERT_TRUE(job.wait(milliseconds(60000)).has_value()) << "hangs\n" << job.output();
  const Told first = read(read_file(path + "/steps.0"));
  const Told second = read(read_file(path + "/steps.1"));
  ASSERT_EQ(first.steps.size(), static_cast<std::size_t>(kSteps)) << job.output();
  ASSERT_EQ(second.steps.size(), static_cast<std::size_t>(kSteps)) << job.output();

  EXPECT_EQ(first.steps.at(kFatalStep).view_change, 0);
  EXPECT_GT(first.steps.at(kSteps).view_change, 0);
  EXPECT_GT(second.steps.at(kSteps).view_change, 0);
  EXPECT_GE(second.steps.at(kSteps).data, kSteps * kLoading);
  for (const Told& told : {first, second}) {
    EXPECT_GE(told.steps.at(kSteps).total, told.steps.at(kSteps).view_change);
  }

  EXPECT_EQ(first.comparisons, second.comparisons);
  ASSERT_EQ(first.comparisons.size(), static_cast<std::size_t>(kSteps / 5));
  EXPECT_EQ(numbers(first.comparisons.at(5)).size(), 4U);
  EXPECT_EQ(numbers(first.comparisons.at(kSteps)).size(), 3U);
  for (const auto& [commits, comparison] : first.comparisons) {
    EXPECT_GE(numbers(comparison).at(2), kLoading) << "at commit " << commits;
  }
  EXPECT_THAT(job.output(), HasSubstr("step 30: rank "));
  EXPECT_THAT(job.output(), HasSubstr("30 steps in "));
}

}  // namespace
}  // namespace elastic::testing
