// The digits, trained with compressed gradients while workers die and join: train_digits under
// elasticrun. Residuals are each worker's own, and the weights the same on all.
#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/digits_job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

class CompressedTraining : public ::testing::TestWithParam<std::string> {};

/// With less than three workers the job waits at a step boundary, so the joiner comes in
/// time.
TEST_P(CompressedTraining, GivesTheSameWeightsThroughADeathAndAJoin) {
  DigitsJob job({"-np", "3", "--min-np", "3", "--max-np", "4", "--max-restarts", "0"},
                {"--compression", GetParam(), "--epochs", "4", "--step-ms",
                 std::to_string(20 * kSlowness), "--die-rank", "1", "--die-at-step", "5"});
  ASSERT_TRUE(job.wait_until_self_destructed()) << job.output();
  ASSERT_TRUE(job.control({"add", "1"})) << job.output();
  ASSERT_TRUE(job.wait_until_stepped(3, 3)) << job.output();
  ASSERT_EQ(job.finish(), 0) << job.output();
  std::set<std::string> hashes;
  for (const auto& report : job.reports()) {
    EXPECT_EQ(report["samples_missed"], 0) << report;
    EXPECT_EQ(report["samples_used_twice"], 0) << report;
    EXPECT_LT(report["gradient_bytes_sent"], report["gradient_bytes_uncompressed"]) << report;
    EXPECT_GT(report["test_accuracy"], 0.8) << report;
    hashes.insert(report["parameter_hash"].get<std::string>());
  }
  EXPECT_EQ(job.reports().size(), 3U) << job.output();
  EXPECT_EQ(hashes.size(), 1U) << job.output();
}

INSTANTIATE_TEST_SUITE_P(Kinds, CompressedTraining,
                         ::testing::Values("bf16", "int8", "two_bit:2", "top_k:0.1"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::ranges::replace_if(
                               name, [](char letter) { return letter == ':' || letter == '.'; },
                               '_');
                           return name;
                         });

TEST(TrainDigits, NamesTheConflictOfCompressionAndReproducible) {
  DigitsJob job({"-np", "1", "--max-restarts", "0"}, {"--batch-policy", "reproducible"},
                {"ELASTIC_COMPRESSION=int8"});
  EXPECT_NE(job.finish(), 0);
  EXPECT_THAT(job.output(), HasSubstr("--compression (or ELASTIC_COMPRESSION) cannot be combined "
                                      "with --batch-policy reproducible"));
}

TEST(TrainDigits, RefusesACompressionThatThereIsNot) {
  DigitsJob job({"-np", "1", "--max-restarts", "0"}, {"--compression", "top_k:2"});
  EXPECT_NE(job.finish(), 0);
  EXPECT_THAT(job.output(), HasSubstr("top_k:RATIO (above 0, at most 1)"));
}

}  // namespace
}  // namespace elastic::testing
