// How far train_digits goes, and what it tells of that.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "integration/digits_job.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

/// Two workers take steps of twice the reference batch, which are worth less than that.
TEST(DigitsTraining, UnderAdaScaleEndsWhereTheScheduleDoes) {
  DigitsJob job({"-np", "2"}, {"--rule", "adascale", "--epochs", "2"});
  ASSERT_EQ(job.finish(), 0) << job.output();
  const auto reports = job.reports();
  ASSERT_EQ(reports.size(), 2U) << job.output();
  const double wanted = 2 * reports.front().at("samples_in_epoch").get<double>();
  double worth = 0;     // of each step twice, as both workers trace it
  double greatest = 0;  // of a step
  for (const auto& step : job.trace()) {
    const double gain = step.at("gamma").get<double>() / step.at("workers").get<double>();
    const double of_step = step.at("batch").get<double>() * gain;
    worth += of_step / 2;
    greatest = std::max(greatest, of_step);
  }
  EXPECT_GT(worth, wanted - 0.001);
  EXPECT_LT(worth, wanted + greatest);
}

/// The rate of two workers after the first step, and when it is there, by the options of the ramp.
TEST(DigitsTraining, TakesTheLengthOfTheRampFromItsOptions) {
  struct Case {
    std::vector<std::string> options;
    double length;
  };
  for (const Case& one : {Case{{"--ramp-steps", "4"}, 4}, Case{{"--momentum", "0.95"}, 60}}) {
    std::vector<std::string> arguments{"--epochs", "2"};
    arguments.insert(arguments.end(), one.options.begin(), one.options.end());
    DigitsJob job({"-np", "2", "--max-restarts", "0"}, arguments);
    ASSERT_EQ(job.finish(), 0) << job.output();
    const auto trace = job.trace();
    ASSERT_GT(trace.size(), 2 * 60U) << job.output();
    for (const auto& step : trace) {
      const double part = std::min(step.at("step").get<double>() / one.length, 1.0);
      EXPECT_NEAR(step.at("gamma").get<double>(), 1 + part, 1e-12) << step;
    }
  }
}

/// The first step throws the weights so far that all others come to NaN.
TEST(DigitsTraining, LeavesSkippedStepsOutOfTheMeanLoss) {
  DigitsJob job({"-np", "1", "env", "ELASTIC_NON_FINITE=skip"}, {"--lr", "1e30", "--epochs", "1"});
  ASSERT_EQ(job.finish(), 0) << job.output();
  const auto trace = job.trace();
  ASSERT_GT(trace.size(), 2U) << job.output();
  double loss = 0;
  double samples = 0;
  for (const auto& step : trace) {
    if (step.at("skipped") == true) continue;
    loss += step.at("loss").get<double>() * step.at("batch").get<double>();
    samples += step.at("batch").get<double>();
  }
  EXPECT_GT(samples, 0);
  EXPECT_EQ(trace.back().at("skipped"), true);
  const auto reports = job.reports();
  ASSERT_EQ(reports.size(), 1U) << job.output();
  ASSERT_TRUE(reports.front().at("loss").is_number()) << reports.front();
  EXPECT_DOUBLE_EQ(reports.front().at("loss"), loss / samples);
}

TEST(DigitsTraining, WritesTheWeightsInTheEnd) {
  const ScratchFolder folder;
  std::vector<std::string> weights;
  for (const char* workers : {"1", "2"}) {
    const std::string file = (folder.path() / workers).string();
    DigitsJob job({"-np", workers},
                  {"--batch-policy", "reproducible", "--epochs", "1", "--weights", file});
    ASSERT_EQ(job.finish(), 0) << job.output();
    weights.push_back(read_file(file));
  }
  EXPECT_EQ(weights[0].size(), (64 * 64 + 64 + 10 * 64 + 10) * sizeof(float));
  EXPECT_TRUE(weights[0] == weights[1]);
}

TEST(DigitsTraining, SaysThatThereIsNoDeviceToComputeOn) {
  DigitsJob job({"-np", "1", "--max-restarts", "0"}, {"--device", "cuda"},
                {"CUDA_VISIBLE_DEVICES="});
  EXPECT_NE(job.finish(), 0);
#ifdef DIGITS_KNOW_CUDA
  EXPECT_THAT(job.output(), HasSubstr("train_digits: no CUDA device can be used here: "));
#else
  EXPECT_THAT(job.output(), HasSubstr("train_digits: this train_digits was built without CUDA"));
#endif
  DigitsJob unknown({"-np", "1", "--max-restarts", "0"}, {"--device", "tpu"});
  EXPECT_NE(unknown.finish(), 0);
  EXPECT_THAT(unknown.output(), HasSubstr("--device: tpu not in {host,cuda}"));
}

}  // namespace
}  // namespace elastic::testing
