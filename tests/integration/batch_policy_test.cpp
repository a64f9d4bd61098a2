// Batches of virtual workers while real workers come and go: train_digits under elasticrun.
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/digits_job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kEpochs = 3;
constexpr int kSamplesInEpoch = 1437;

std::vector<std::string> trainer(const std::string& policy,
                                 const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{
      "--batch-policy",    policy, "--batch",  "64",
      "--virtual-workers", "8",    "--epochs", std::to_string(kEpochs)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// Long enough that the training is not over before what is to happen in it has.
std::string step_ms() {
  return std::to_string(50 * kHangFactor);
}

/// All workers that came to the end must have used every sample once in each epoch, and must have
/// the same parameters: their hash.
std::string hash_of(const DigitsJob& job, std::size_t workers) {
  const auto reports = job.reports();
  EXPECT_EQ(reports.size(), workers) << job.output();
  std::set<std::string> hashes;
  for (const auto& report : reports) {
    EXPECT_EQ(report["outcome"], "finished");
    EXPECT_EQ(report["samples_used_once"], kEpochs * kSamplesInEpoch) << report;
    EXPECT_EQ(report["samples_missed"], 0) << report;
    EXPECT_EQ(report["samples_used_twice"], 0) << report;
    hashes.insert(report["parameter_hash"].get<std::string>());
  }
  EXPECT_EQ(hashes.size(), 1U) << job.output();
  return hashes.empty() ? "" : *hashes.begin();
}

std::string undisturbed_hash(std::size_t workers) {
  DigitsJob job({"-np", std::to_string(workers)}, trainer("reproducible"));
  EXPECT_EQ(job.finish(), 0) << job.output();
  return hash_of(job, workers);
}

TEST(Reproducible, HasOneHashInWorldsOfOneTwoAndFour) {
  const std::string alone = undisturbed_hash(1);
  EXPECT_EQ(undisturbed_hash(2), alone);
  EXPECT_EQ(undisturbed_hash(4), alone);
}

/// With less than three workers the job waits at a step boundary, so each joiner comes in time.
TEST(Reproducible, HasTheSameHashThroughThreeKillsAndTwoJoins) {
  DigitsJob job(
      {"-np", "4", "--min-np", "3", "--max-np", "4", "--max-restarts", "0"},
      trainer("reproducible", {"--step-ms", step_ms(), "--die-rank", "1", "--die-at-step", "3"}));
  ASSERT_TRUE(job.wait_until_self_destructed()) << job.output();
  ASSERT_TRUE(job.wait_until_stepped(3, 6)) << job.output();
  job.kill_one();
  ASSERT_TRUE(job.control({"add", "1"})) << job.output();
  ASSERT_TRUE(job.wait_until_stepped(3, 3)) << job.output();
  job.kill_one();
  ASSERT_TRUE(job.control({"add", "1"})) << job.output();
  ASSERT_EQ(job.finish(), 0) << job.output();
  EXPECT_EQ(hash_of(job, 3), undisturbed_hash(1));
}

TEST(FixedTotal, UsesEverySampleOnceThroughKills) {
  DigitsJob job(
      {"-np", "4", "--min-np", "1", "--max-restarts", "0"},
      trainer("fixed_total", {"--step-ms", step_ms(), "--die-rank", "2", "--die-at-step", "3"}));
  ASSERT_TRUE(job.wait_until_self_destructed()) << job.output();
  ASSERT_TRUE(job.wait_until_stepped(3, 6)) << job.output();
  job.kill_one();
  ASSERT_TRUE(job.wait_until_stepped(2, 10)) << job.output();
  job.kill_one();
  ASSERT_EQ(job.finish(), 0) << job.output();
  hash_of(job, 1);
  for (const auto& step : job.trace()) {
    EXPECT_EQ(step["gamma"], 1.0) << step;
    EXPECT_TRUE(step["batch"] == 64 || step["batch"] == kSamplesInEpoch % 64) << step;
  }
}

TEST(TrainDigits, RefusesABatchThatDoesNotDivideAmongVirtualWorkers) {
  DigitsJob job({"-np", "1", "--max-restarts", "0"},
                {"--batch-policy", "fixed_total", "--batch", "20", "--virtual-workers", "8"});
  EXPECT_NE(job.finish(), 0);
  EXPECT_THAT(job.output(), HasSubstr("a batch of 20 samples does not divide among 8 virtual "
                                      "workers; give a batch of 16 or 24"));
}

}  // namespace
}  // namespace elastic::testing
