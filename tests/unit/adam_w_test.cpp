#include <algorithm>
#include <cmath>
#include <limits>
#include <rapidcheck.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/layout.hpp"
#include "elastic/error.hpp"
#include "elastic/optimizers.hpp"
#include "elastic/state.hpp"
#include "tests/unit/optimizer_run.hpp"
#include "training/state_image.hpp"

namespace elastic {
namespace {

using testing::any_batches;
using testing::any_policy;
using ::testing::ElementsAre;
using AdamTraining = testing::OptimizerRun<AdamW>;

/// A single weight that begins at 1, with gradients 0.5, -0.25 and 1, after each step.
std::vector<float> three_steps(const std::vector<Rate>& rates) {
  std::vector<float> weight{1};
  AdamW optimizer({weight}, {});
  std::vector<float> result;
  for (const float g : {0.5F, -0.25F, 1.0F}) {
    const std::vector<float> sum{8 * g};
    optimizer.step({{sum}}, 8, rates[result.size()]);
    result.push_back(weight[0]);
  }
  return result;
}

void expect_near(const std::vector<float>& actual, const std::vector<double>& expected) {
  for (std::size_t at = 0; at < expected.size(); ++at) {
    EXPECT_NEAR(double{actual[at]}, expected[at], 1e-6) << "step " << at;
  }
}

TEST(AdamW, FollowsTheWorkedVectors) {
  const Rate rate{.base = 0.1};
  expect_near(three_steps({rate, rate, rate}), {0.899000002, 0.871467299, 0.804784672});
}

TEST(AdamW, TakesTheRootOfGamma) {
  const Rate grown{.base = 0.1, .gamma = 4};
  expect_near(three_steps({{.base = 0.1}, grown, grown}), {0.899000002, 0.843934595, 0.710624408});
}

/// At gamma 4 beta1 is 1 - 4 * 0.1 and beta2 1 - 4 * 0.001, and the first step's correction makes
/// up for both.
TEST(AdamW, ScalesTheBetasAndEpsilonWhereAsked) {
  std::vector<float> weight{1};
  AdamW optimizer({weight}, {.weight_decay = 0, .scale_betas = true});
  const std::vector<float> first{0.5F};
  const std::vector<float> second{-0.25F};
  optimizer.step({{first}}, 1, {.base = 0.1, .gamma = 4});
  EXPECT_NEAR(double{optimizer.momentum()[0]}, 0.4 * 0.5, 1e-7);
  EXPECT_NEAR(double{optimizer.variance()[0]}, 0.004 * 0.25, 1e-9);
  EXPECT_NEAR(double{weight[0]}, 1 - 0.1 * 2, 1e-6);
  optimizer.step({{second}}, 1, {.base = 0.1, .gamma = 1});
  const double m = 0.9 * 0.2 - 0.1 * 0.25;
  const double v = 0.999 * 0.001 + 0.001 * 0.0625;
  EXPECT_NEAR(double{optimizer.momentum()[0]}, m, 1e-7);
  EXPECT_NEAR(double{optimizer.variance()[0]}, v, 1e-9);
  EXPECT_NEAR(double{weight[0]},
              0.8 - 0.1 * (m / (1 - 0.6 * 0.9)) / std::sqrt(v / (1 - 0.996 * 0.999)), 1e-5);
  // Nothing is left of the momentum where the batch is ten times as large.
  const std::vector<float> third{2};
  optimizer.step({{third}}, 1, {.base = 0.1, .gamma = 16});
  EXPECT_FLOAT_EQ(optimizer.momentum()[0], 2);
}

AdamW::Options any_adam_options() {
  return {.beta1 = *rc::gen::inRange(0, 100) / 100.0,
          .beta2 = *rc::gen::inRange(500, 1000) / 1000.0,
          .epsilon = 1e-6,
          .weight_decay = *rc::gen::inRange(0, 10) / 100.0};
}

/// The formulas of the header, in double precision.
struct AdamReference {
  explicit AdamReference(const AdamTraining& run)
      : w(run.weights.begin(), run.weights.end()), m(w.size()), v(w.size()) {}

  void step(const AdamW::Options& options, const std::vector<float>& sum, double batch,
            const Rate& rate) {
    const double full = rate.base * std::sqrt(rate.gamma);
    if (rate.momentum_scale == 0) since_reset = 0;
    ++since_reset;
    ++steps;
    for (std::size_t at = 0; at < w.size(); ++at) {
      const double g = double{sum[at]} / batch;
      m[at] = options.beta1 * std::sqrt(rate.momentum_scale) * m[at] + (1 - options.beta1) * g;
      v[at] = options.beta2 * v[at] + (1 - options.beta2) * g * g;
      const double mean = m[at] / (1 - std::pow(options.beta1, since_reset));
      const double variance = v[at] / (1 - std::pow(options.beta2, steps));
      w[at] = w[at] * (1 - full * options.weight_decay) -
              full * mean / (std::sqrt(variance) + options.epsilon);
      greatest = std::max({greatest, std::abs(w[at]), std::abs(mean)});
    }
  }

  std::vector<double> w;
  std::vector<double> m;
  std::vector<double> v;
  double greatest = 1;  // of all numbers so far
  int steps = 0;
  int since_reset = 0;
};

TEST(AdamW, FollowsTheFormulas) {
  const auto holds = [] {
    const AdamW::Options options = any_adam_options();
    AdamTraining run(options, any_policy());
    AdamReference reference(run);
    for (const double batch : any_batches()) {
      run.step(batch);
      reference.step(options, run.sum, batch, run.rate);
      for (std::size_t at = 0; at < run.weights.size(); ++at) {
        RC_ASSERT(std::abs(double{run.weights[at]} - reference.w[at]) < 1e-3 * reference.greatest);
      }
    }
  };
  EXPECT_TRUE(rc::check("of all options", holds));
}

TEST(AdamW, ResetBeginsTheMomentumAndItsCorrectionAgain) {
  std::vector<float> weight{1};
  AdamW optimizer({weight}, {.weight_decay = 0});
  const std::vector<float> sum{4};
  for (int step = 0; step < 20; ++step) optimizer.step({{sum}}, 1, {.base = 0.01});
  const float before = weight[0];
  optimizer.step({{sum}}, 1, {.base = 0.01, .momentum_scale = 0});
  EXPECT_FLOAT_EQ(optimizer.momentum()[0], 0.1F * 4);
  EXPECT_NEAR(double{before - weight[0]}, 0.01, 1e-6);  // a whole step, not a tenth of one
}

TEST(AdamW, ResetGetsRidOfNumbersThatAreNone) {
  std::vector<float> weight{1};
  AdamW optimizer({weight}, {});
  const std::vector<float> bad{std::numeric_limits<float>::quiet_NaN()};
  optimizer.step({{bad}}, 1, {.base = 0.01});
  const std::vector<float> sum{4};
  optimizer.step({{sum}}, 1, {.base = 0.01, .momentum_scale = 0});
  EXPECT_FLOAT_EQ(optimizer.momentum()[0], 0.1F * 4);
}

TEST(AdamW, AddsWhatItKeepsToTheState) {
  std::vector<float> weights(3);
  AdamW optimizer({weights}, {});
  State state;
  optimizer.add_to(state, "adam");
  EXPECT_THAT(
      training::layout(state),
      ElementsAre(LayoutEntry{"adam/options", "object", 0}, LayoutEntry{"adam/momentum", "f32", 3},
                  LayoutEntry{"adam/variance", "f32", 3},
                  LayoutEntry{"adam/power of beta1", "scalar f64", 1},
                  LayoutEntry{"adam/power of beta2", "scalar f64", 1}));
}

TEST(AdamW, StateOfOtherOptionsIsRefused) {
  using testing::expect_other_options_are_refused;
  expect_other_options_are_refused<AdamW>({}, {.beta1 = 0.8}, "beta1 is 0.8", "0.9 here");
  expect_other_options_are_refused<AdamW>({}, {.beta2 = 0.99}, "beta2 is 0.99", "0.999 here");
  expect_other_options_are_refused<AdamW>({}, {.epsilon = 1e-6}, "epsilon is 1e-06", "1e-08 here");
  expect_other_options_are_refused<AdamW>({}, {.weight_decay = 0}, "weight_decay is 0",
                                          "0.01 here");
}

TEST(AdamW, JoinerContinuesWithTheSameBits) {
  const auto holds = [] {
    testing::expect_same_bits_after_a_join<AdamW>(any_adam_options(), any_policy(), any_batches());
  };
  EXPECT_TRUE(rc::check("from any step", holds));
}

TEST(AdamW, AllocatesNothingInAStep) {
  AdamTraining run({}, ResizePolicy::kRamp);
  EXPECT_EQ(testing::allocations_in_a_step(run), 0U);
}

TEST(AdamW, RefusesWhatMakesNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<float> weights(3);
  for (const double beta : {-0.1, 1.0, 2.0, 0.99999999, nan}) {
    EXPECT_THROW(AdamW({weights}, {.beta1 = beta}), Error);
    EXPECT_THROW(AdamW({weights}, {.beta2 = beta}), Error);
  }
  for (const double epsilon : {0.0, -1e-8, 1e-50, 1e39, nan}) {
    EXPECT_THROW(AdamW({weights}, {.epsilon = epsilon}), Error);
  }
  EXPECT_THROW(AdamW({weights}, {.weight_decay = -1}), Error);

  AdamW optimizer({weights}, {});
  const std::vector<float> sum(3);
  EXPECT_THROW(optimizer.step({}, 1, {.base = 0.1}), Error);
  for (const double batch : {0.0, -1.0, nan}) {
    EXPECT_THROW(optimizer.step({{sum}}, batch, {.base = 0.1}), Error);
  }
  for (const double rate : {-0.1, 1e39, 101.0, nan}) {  // 101 * 0.01 is more than all weights
    EXPECT_THROW(optimizer.step({{sum}}, 1, {.base = rate}), Error);
  }
  EXPECT_THROW(optimizer.step({{sum}}, 1, {.base = 1, .gamma = -1}), Error);
  EXPECT_THROW(optimizer.step({{sum}}, 1, {.base = 1, .momentum_scale = nan}), Error);
}

}  // namespace
}  // namespace elastic
