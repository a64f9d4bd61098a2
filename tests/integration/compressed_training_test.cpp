// The digits, trained with compressed gradients while workers die and join: train_digits under
// elasticrun. Residuals are each worker's own, and the weights the same on all.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/digits_checks.hpp"
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
  expect_equal_weights_through_a_death_and_a_join(job);
  for (const auto& report : job.reports()) {
    EXPECT_LT(report["gradient_bytes_sent"], report["gradient_bytes_uncompressed"]) << report;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, CompressedTraining,
                         ::testing::Values("bf16", "int8", "two_bit:2", "top_k:0.1"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::ranges::replace_if(
                               name,
                               [](char character) { return character == ':' || character == '.'; },
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
