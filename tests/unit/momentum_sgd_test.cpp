#include <algorithm>
#include <cmath>
#include <limits>
#include <rapidcheck.h>
#include <string>
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
using ::testing::HasSubstr;
using SgdTraining = testing::OptimizerRun<MomentumSgd>;

/// Steps of a single weight that begins at 1.
class OneWeight {
 public:
  explicit OneWeight(const MomentumSgd::Options& options) : optimizer_({weight_}, options) {}

  float step(float gradient_sum, double batch, const Rate& rate) {
    const std::vector<float> sum{gradient_sum};
    optimizer_.step({{sum}}, batch, rate);
    return weight_[0];
  }
  float momentum() const { return optimizer_.momentum()[0]; }
  float velocity() const { return optimizer_.velocity()[0]; }

 private:
  std::vector<float> weight_{1};
  MomentumSgd optimizer_;
};

TEST(MomentumSgd, KeepsTheRateOutOfTheMomentum) {
  OneWeight weight({.momentum = 0.5});
  EXPECT_EQ(weight.step(8, 4, {.base = 1}), -1);
  EXPECT_EQ(weight.momentum(), 2);
  EXPECT_EQ(weight.step(8, 4, {.base = 0.5, .gamma = 0.5}), -1.75F);
  EXPECT_EQ(weight.momentum(), 3);
}

TEST(MomentumSgd, LooksAheadAsNesterovDoes) {
  OneWeight weight({.momentum = 0.5, .nesterov = true});
  EXPECT_EQ(weight.step(2, 1, {.base = 0.25}), 1 - 0.25F * (2 + 0.5F * 2));
  EXPECT_EQ(weight.step(4, 1, {.base = 0.25}), 0.25F - 0.25F * (4 + 0.5F * 5));
}

TEST(MomentumSgd, CoupledDecayGoesThroughTheMomentum) {
  OneWeight weight({.momentum = 0.5, .weight_decay = 0.25});
  EXPECT_EQ(weight.step(1, 1, {.base = 0.5}), 1 - 0.5F * 1.25F);
  EXPECT_EQ(weight.momentum(), 1.25F);
}

TEST(MomentumSgd, DecoupledDecayDoesNot) {
  OneWeight weight({.momentum = 0.5, .weight_decay = 0.25, .decay = WeightDecay::kDecoupled});
  EXPECT_EQ(weight.step(1, 1, {.base = 0.5}), 0.875F - 0.5F);
  EXPECT_EQ(weight.momentum(), 1);
}

TEST(MomentumSgd, MomentumIsRescaledAndReset) {
  OneWeight weight({.momentum = 0.5});
  weight.step(4, 1, {.base = 0.5});
  weight.step(0, 1, {.base = 0.5, .gamma = 4, .momentum_scale = 0.25});
  EXPECT_EQ(weight.momentum(), 0.5);
  weight.step(8, 1, {.base = 0.5, .gamma = 2, .momentum_scale = 0});
  EXPECT_EQ(weight.momentum(), 8);
}

TEST(MomentumSgd, ResetGetsRidOfNumbersThatAreNone) {
  std::vector<float> weight{1};
  MomentumSgd optimizer({weight}, {});
  const std::vector<float> bad{std::numeric_limits<float>::quiet_NaN()};
  optimizer.step({{bad}}, 1, {.base = 0.5});
  weight[0] = 1;
  const std::vector<float> sum{8};
  optimizer.step({{sum}}, 1, {.base = 0.5, .momentum_scale = 0});
  EXPECT_EQ(optimizer.momentum()[0], 8);
}

MomentumSgd::Options any_sgd_options() {
  return {.momentum = *rc::gen::inRange(0, 100) / 100.0,
          .nesterov = *rc::gen::arbitrary<bool>(),
          .weight_decay = *rc::gen::inRange(0, 10) / 100.0,
          .decay = *rc::gen::arbitrary<bool>() ? WeightDecay::kCoupled : WeightDecay::kDecoupled,
          .form = *rc::gen::arbitrary<bool>() ? MomentumSgd::Form::kAccumulator
                                              : MomentumSgd::Form::kVelocity};
}

TEST(MomentumSgd, BothFormsTakeTheSameStepsToTheLastBit) {
  const auto holds = [] {
    MomentumSgd::Options options = any_sgd_options();
    const ResizePolicy policy = any_policy();
    options.form = MomentumSgd::Form::kAccumulator;
    SgdTraining accumulator(options, policy);
    options.form = MomentumSgd::Form::kVelocity;
    SgdTraining velocity(options, policy);
    for (const double batch : any_batches()) {
      const std::vector<float> before = velocity.weights;
      accumulator.step(batch);
      velocity.step(batch);
      RC_ASSERT(velocity.weights == accumulator.weights);
      if (options.decay == WeightDecay::kDecoupled) continue;
      // v is what the step was.
      for (std::size_t at = 0; at < before.size(); ++at) {
        RC_ASSERT(velocity.weights[at] == before[at] - velocity.optimizer.velocity()[at]);
      }
    }
    RC_ASSERT(accumulator.optimizer.velocity().empty());
  };
  EXPECT_TRUE(rc::check("over a run of changes", holds));
}

/// Why v is derived from u and does not take its place: what u does next is no function of v.
TEST(MomentumSgd, DifferentMomentaCanHaveTheSameVelocity) {
  const MomentumSgd::Options options{.momentum = 0.5, .form = MomentumSgd::Form::kVelocity};
  OneWeight one(options);
  OneWeight other(options);
  const float u = 1.5F + 0x2p-23F;
  const float next = 1.5F + 0x3p-23F;
  const Rate rate{.base = 0.75};  // 1.125 and 1.5 or 2.25 units of 2^-23: both round to 2
  EXPECT_EQ(one.step(u, 1, rate), other.step(next, 1, rate));
  EXPECT_EQ(one.velocity(), other.velocity());
  one.step(0, 1, {.base = 0.5});
  other.step(0, 1, {.base = 0.5});
  EXPECT_NE(one.velocity(), other.velocity());
}

/// `v = mu * (rate / rate before) * v + rate * g; w = w - v` in single precision drifts away by
/// some roundings of each step, and by no more.
TEST(MomentumSgd, TextbookVelocityStaysWithinRoundings) {
  const auto holds = [] {
    constexpr double kMomentum = 0.9;
    OneWeight accumulator({.momentum = kMomentum});
    LearningRate learning_rate({.schedule = Schedule::constant(0.3), .batch_reference = 4});
    float w = 1;
    float v = 0;
    double before = 0;
    double travelled = 0;
    int step = 0;
    for (const double batch : any_batches()) {
      const Rate rate = learning_rate.step(batch, batch);
      const auto g = static_cast<float>(std::sin(1.3 * step++));
      const float expected = accumulator.step(g, 1, rate);
      const double ratio = before > 0 ? rate.value() / before : 1;
      v = static_cast<float>(kMomentum * ratio) * v + static_cast<float>(rate.value()) * g;
      w -= v;
      before = rate.value();
      // The bounds of v and of w, which are the values that each step rounds. Measured errors are a
      // third of a rounding of each; without the correction of v they are thousands.
      travelled += rate.value() / (1 - kMomentum) + std::abs(double{w});
      const double roundings = std::abs(double{w} - double{expected}) / 0x1p-24;
      RC_ASSERT(roundings <= 4 * travelled);
    }
  };
  EXPECT_TRUE(rc::check("single precision", holds));
}

/// The formulas of the header, in double precision.
struct SgdReference {
  explicit SgdReference(const SgdTraining& run)
      : w(run.weights.begin(), run.weights.end()), u(w.size()) {}

  void step(const MomentumSgd::Options& options, const std::vector<float>& sum, double batch,
            const Rate& rate) {
    const bool coupled = options.decay == WeightDecay::kCoupled;
    for (std::size_t at = 0; at < w.size(); ++at) {
      const double g = double{sum[at]} / batch + (coupled ? options.weight_decay * w[at] : 0);
      u[at] = options.momentum * rate.momentum_scale * u[at] + g;
      const double v = rate.value() * (options.nesterov ? g + options.momentum * u[at] : u[at]);
      w[at] = w[at] * (coupled ? 1 : 1 - rate.value() * options.weight_decay) - v;
      greatest = std::max({greatest, std::abs(w[at]), std::abs(v), std::abs(u[at])});
    }
  }

  std::vector<double> w;
  std::vector<double> u;
  double greatest = 1;  // of all numbers so far
};

TEST(MomentumSgd, FollowsTheFormulas) {
  const auto holds = [] {
    const MomentumSgd::Options options = any_sgd_options();
    SgdTraining run(options, any_policy());
    SgdReference reference(run);
    for (const double batch : any_batches()) {
      run.step(batch);
      reference.step(options, run.sum, batch, run.rate);
      for (std::size_t at = 0; at < run.weights.size(); ++at) {
        RC_ASSERT(std::abs(double{run.weights[at]} - reference.w[at]) < 1e-4 * reference.greatest);
      }
    }
  };
  EXPECT_TRUE(rc::check("of all options", holds));
}

TEST(MomentumSgd, AddsWhatItKeepsToTheState) {
  std::vector<float> weights(3);
  MomentumSgd plain({weights}, {});
  MomentumSgd both({weights}, {.form = MomentumSgd::Form::kVelocity});
  State state;
  plain.add_to(state, "plain");
  both.add_to(state, "both");
  EXPECT_THAT(
      training::layout(state),
      ElementsAre(LayoutEntry{"plain/options", "object", 0},
                  LayoutEntry{"plain/momentum", "f32", 3}, LayoutEntry{"both/options", "object", 0},
                  LayoutEntry{"both/momentum", "f32", 3}, LayoutEntry{"both/velocity", "f32", 3}));
}

TEST(MomentumSgd, StateOfOtherOptionsIsRefused) {
  using testing::expect_other_options_are_refused;
  const MomentumSgd::Options own{.momentum = 0.9, .weight_decay = 0.1};
  MomentumSgd::Options other = own;
  other.momentum = 0.95;
  expect_other_options_are_refused<MomentumSgd>(own, other, "momentum is 0.95", "0.9 here");
  other = own;
  other.nesterov = true;
  expect_other_options_are_refused<MomentumSgd>(own, other, "nesterov is 1", "0 here");
  other = own;
  other.weight_decay = 0;
  expect_other_options_are_refused<MomentumSgd>(own, other, "weight_decay is 0", "0.1 here");
  other = own;
  other.decay = WeightDecay::kDecoupled;
  expect_other_options_are_refused<MomentumSgd>(own, other, "1: decoupled) is 1", "0 here");
  other = own;
  other.form = MomentumSgd::Form::kVelocity;
  expect_other_options_are_refused<MomentumSgd>(own, other, "entries", "same entries");
}

TEST(MomentumSgd, JoinerContinuesWithTheSameBits) {
  const auto holds = [] {
    testing::expect_same_bits_after_a_join<MomentumSgd>(any_sgd_options(), any_policy(),
                                                        any_batches());
  };
  EXPECT_TRUE(rc::check("from any step", holds));
}

TEST(MomentumSgd, AllocatesNothingInAStep) {
  SgdTraining run({.form = MomentumSgd::Form::kVelocity}, ResizePolicy::kRamp);
  EXPECT_EQ(testing::allocations_in_a_step(run), 0U);
}

TEST(MomentumSgd, RefusesToTakeMoreThanAllWeightsByDecoupledDecay) {
  OneWeight decoupled({.weight_decay = 0.5, .decay = WeightDecay::kDecoupled});
  EXPECT_THROW(decoupled.step(1, 1, {.base = 2.5}), Error);
  EXPECT_EQ(decoupled.momentum(), 0);
  EXPECT_EQ(decoupled.step(1, 1, {.base = 2}), -2);  // from 1, which is not changed before
  OneWeight coupled({.weight_decay = 0.5});
  EXPECT_NO_THROW(coupled.step(1, 1, {.base = 2.5}));
}

std::string refusal(const std::vector<std::size_t>& sizes, double batch, const Rate& rate) {
  std::vector<float> weights(8);
  const std::vector<float> sum(8);
  MomentumSgd optimizer({std::span(weights).first(5), std::span(weights).subspan(5)}, {});
  std::vector<std::span<const float>> gradient;
  for (const std::size_t size : sizes) gradient.push_back(std::span(sum).first(size));
  try {
    optimizer.step(gradient, batch, rate);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(MomentumSgd, RefusesWhatMakesNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<float> weights(3);
  for (const double momentum : {-0.1, 1.0, 1.5, 0.99999999, -1e-50, nan}) {
    EXPECT_THROW(MomentumSgd({weights}, {.momentum = momentum}), Error);
  }
  for (const double decay : {-0.1, 1e39, nan}) {
    EXPECT_THROW(MomentumSgd({weights}, {.weight_decay = decay}), Error);
  }
  const Rate rate{.base = 0.1};
  EXPECT_EQ(refusal({5, 3}, 4, rate), "accepted");
  EXPECT_THAT(refusal({5}, 4, rate), HasSubstr("1 tensors, the parameters 2"));
  EXPECT_THAT(refusal({5, 2}, 4, rate), HasSubstr("tensor 1 of the gradient has 2 elements"));
  EXPECT_THAT(refusal({5, 3}, 0, rate), HasSubstr("batch is 0"));
  EXPECT_THAT(refusal({5, 3}, nan, rate), HasSubstr("batch is nan"));
  EXPECT_THAT(refusal({5, 3}, 4, {.base = -0.5}), HasSubstr("rate is -0.5"));
  EXPECT_THAT(refusal({5, 3}, 4, {.base = nan}), HasSubstr("rate is nan"));
  EXPECT_THAT(refusal({5, 3}, 4, {.base = 1e39}), HasSubstr("rate is 1e+39"));
  EXPECT_THAT(refusal({5, 3}, 1e-50, rate), HasSubstr("batch is 1e-50"));
  EXPECT_THAT(refusal({5, 3}, 4, {.base = 1, .momentum_scale = 1e39}), HasSubstr("momentum_scale"));
  EXPECT_THAT(refusal({5, 3}, 4, {.base = 1, .momentum_scale = -1}), HasSubstr("momentum_scale"));
}

}  // namespace
}  // namespace elastic
