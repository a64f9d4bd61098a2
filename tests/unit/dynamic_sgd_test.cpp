// The training of examples/dynamic_sgd with all workers in one process.
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/learning_rate.hpp"
#include "elastic/optimizers.hpp"
#include "elastic/sampler.hpp"
#include "examples/digits/dataset.hpp"
#include "examples/digits/network.hpp"
#include "examples/dynamic_sgd/held_out.hpp"
#include "examples/dynamic_sgd/simulated_job.hpp"

namespace dynamic_sgd {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kEpochs = 3;
constexpr Plan kAlone{.epochs = kEpochs, .workers = 1, .grow_at = 1, .shrink_at = 2};

digits::Dataset data() {
  return digits::split(digits::read_samples(ELASTIC_DIGITS_CSV));
}

/// One worker without any of the above: what dynamic_sgd is to come to where nothing changes.
digits::Parameters plain_loop(const std::vector<digits::Sample>& training,
                              const LearnerOptions& options) {
  digits::Parameters weights = digits::initial_parameters(options.seed);
  elastic::MomentumSgd optimizer({weights.values()}, {.momentum = options.momentum});
  elastic::LearningRate learning_rate({.schedule = elastic::Schedule::constant(options.rate),
                                       .batch_reference = static_cast<double>(options.batch)});
  elastic::Sampler sampler(training.size(), options.seed);
  const std::vector<elastic::WorkerId> members{1};
  sampler.set_members(members, 1);
  digits::Network network;
  const auto batch = static_cast<double>(options.batch);
  for (double left = static_cast<double>(training.size() * kEpochs); left > 0;) {
    digits::Parameters gradient;
    const auto share = sampler.next(options.batch);
    for (const std::size_t index : share) network.add_gradient(weights, training[index], gradient);
    const auto samples = static_cast<double>(share.size());
    sampler.commit(members);
    optimizer.step({{gradient.values()}}, batch, learning_rate.step(batch, samples));
    left -= samples;
  }
  return weights;
}

TEST(DynamicSgd, OneWorkerTakesTheStepsOfAPlainLoop) {
  const digits::Dataset digits = data();
  const LearnerOptions options{.batch = 32, .rate = 0.07, .momentum = 0.8, .seed = 5};
  Learner learner(options, digits.training);
  train_simulated(kAlone, learner, [](const StepInfo&) {});
  const digits::Parameters expected = plain_loop(digits.training, options);
  const auto values = learner.weights().values();
  const auto expected_values = expected.values();
  EXPECT_TRUE(std::equal(values.begin(), values.end(), expected_values.begin()));
}

TEST(DynamicSgd, FollowsThePlanAndUsesEachSampleOnceInAnEpoch) {
  const digits::Dataset digits = data();
  const auto in_epoch = static_cast<std::int64_t>(digits.training.size());
  const Plan plan{.epochs = 4, .workers = 12, .grow_at = 1, .shrink_at = 2, .shrink_to = 3};
  Learner learner({.policy = elastic::ResizePolicy::kImmediate}, digits.training);
  std::map<std::int64_t, std::size_t> steps;  // by epoch
  std::int64_t before = 0;
  train_simulated(plan, learner, [&](const StepInfo& info) {
    const std::int64_t epoch = before / in_epoch;
    EXPECT_LE(info.samples, (epoch + 1) * in_epoch);
    EXPECT_EQ(info.workers, plan.workers_in(static_cast<std::uint64_t>(epoch)));
    EXPECT_EQ(info.gamma, static_cast<double>(info.workers));
    before = info.samples;
    ++steps[epoch];
  });
  EXPECT_EQ(before, 4 * in_epoch);
  // An epoch has 1437 samples; the batches are 8, 96 and 24.
  EXPECT_EQ(steps, (std::map<std::int64_t, std::size_t>{{0, 180}, {1, 15}, {2, 60}, {3, 60}}));
}

TEST(DynamicSgd, EvaluatesAsTheNetworkDoes) {
  const digits::Dataset digits = data();
  const digits::Parameters weights = digits::initial_parameters(9);
  const Evaluation evaluation = HeldOut(digits.test).evaluate(weights);
  digits::Network network;
  double loss = 0;
  for (const digits::Sample& sample : digits.test) loss += double{network.loss(weights, sample)};
  EXPECT_NEAR(evaluation.loss, loss / static_cast<double>(digits.test.size()), 1e-6);
  EXPECT_EQ(evaluation.accuracy, digits::accuracy(weights, digits.test));
}

std::string error_of(const Plan& plan) {
  try {
    check(plan);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(DynamicSgd, RefusesPlansThatAreNone) {
  EXPECT_EQ(error_of(Plan{}), "no error");
  EXPECT_EQ(error_of(kAlone), "no error");
  EXPECT_THAT(error_of({.grow_at = 0}), HasSubstr("--grow-at 0, --shrink-at 12"));
  EXPECT_THAT(error_of({.grow_at = 12}), HasSubstr("--grow-at 12, --shrink-at 12"));
  EXPECT_THAT(error_of({.epochs = 12}), HasSubstr("--shrink-at 12 and --epochs 12"));
  EXPECT_THAT(error_of({.shrink_to = 0}), HasSubstr("--shrink-to 0: 1 to 8 workers"));
  EXPECT_THAT(error_of({.workers = 4, .shrink_to = 5}), HasSubstr("--shrink-to 5: 1 to 4 workers"));
}

}  // namespace
}  // namespace dynamic_sgd
