// The digits are trained while a worker dies and another takes its place: with each rule and policy
// all workers take the same steps, with the rates that follow from the contributors.
#include <map>
#include <string>
#include <vector>

#include <elastic/learning_rate.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "integration/digits_job.hpp"

namespace elastic::testing {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds kLong{60000};
constexpr double kBatch = 16;  // of one worker, as train_digits has it, and the reference
constexpr double kBaseRate = 0.02;

struct Tested {
  std::string rule;
  std::string policy;
};

/// The workers' reports on each step, by the number of the step.
using Steps = std::map<int, std::vector<json>>;

Steps steps_of(const DigitsJob& job) {
  Steps steps;
  for (const json& told : job.trace()) steps[told.at("step")].push_back(told);
  return steps;
}

/// Steps of all three workers after some of two.
int steps_after_the_join(const DigitsJob& job) {
  bool shrunk = false;
  int steps = 0;
  for (const auto& [step, told] : steps_of(job)) {
    shrunk = shrunk || told.front().at("workers") == 2;
    if (shrunk && told.front().at("workers") == 3) ++steps;
  }
  return steps;
}

class ResizedTraining : public ::testing::TestWithParam<Tested> {
 protected:
  /// Trains until the join is well past.
  void train() {
    EXPECT_TRUE(eventually(kLong, [this] { return steps_after_the_join(job_) >= 40; }));
    EXPECT_TRUE(job_.control({"stop"}));
    ASSERT_NE(job_.finish(), -1) << "hangs\n" << job_.output();
    ASSERT_FALSE(HasFailure()) << job_.output();
  }

  DigitsJob job_{{"-np", "3", "--max-np", "3", "--max-restarts", "1"},
                 {"--epochs", "1000000", "--step-ms", "1", "--die-rank", "1", "--die-at-step", "20",
                  "--rule", GetParam().rule},
                 {"ELASTIC_RESIZE_POLICY=" + GetParam().policy}};
};

TEST_P(ResizedTraining, AllWorkersTakeTheSameSteps) {
  ASSERT_NO_FATAL_FAILURE(train());
  const ScalingRule rule = *find_named(kScalingRules, GetParam().rule);
  LearningRate expected({.schedule = Schedule::constant(kBaseRate),
                         .batch_reference = kBatch,
                         .rule = rule,
                         .policy = *find_named(kResizePolicies, GetParam().policy)});
  for (const auto& [step, told] : steps_of(job_)) {
    for (const json& one : told) {
      for (const char* key : {"workers", "batch", "gamma", "rate", "loss", "parameter_hash"}) {
        EXPECT_EQ(one.at(key), told.front().at(key)) << key << " of step " << step;
      }
    }
    const auto workers = told.front().at("workers").get<double>();
    const auto gamma = told.front().at("gamma").get<double>();
    if (rule == ScalingRule::kAdaScale) {
      EXPECT_TRUE(gamma >= 1 && gamma <= workers) << gamma << " in step " << step;
      continue;
    }
    const Rate rate = expected.step(workers * kBatch, told.front().at("batch"));
    EXPECT_EQ(gamma, rate.gamma) << "step " << step;
    EXPECT_EQ(told.front().at("rate"), rate.value()) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(With, ResizedTraining,
                         ::testing::Values(Tested{"linear", "ramp"}, Tested{"linear", "immediate"},
                                           Tested{"linear", "rescale"}, Tested{"sqrt", "reset"},
                                           Tested{"linear", "none"}, Tested{"adascale", "ramp"},
                                           Tested{"adascale", "rescale"}),
                         [](const auto& tested) {
                           return tested.param.rule + "_" + tested.param.policy;
                         });

}  // namespace
}  // namespace elastic::testing
