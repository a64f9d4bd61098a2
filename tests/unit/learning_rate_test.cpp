#include "elastic/learning_rate.hpp"

#include <cmath>
#include <limits>
#include <rapidcheck.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/error.hpp"

namespace elastic {
namespace {

using ::testing::HasSubstr;

constexpr double kReference = 16;

LearningRate made(ResizePolicy policy, ScalingRule rule = ScalingRule::kLinear) {
  return LearningRate({.schedule = Schedule::constant(0.5),
                       .batch_reference = kReference,
                       .rule = rule,
                       .policy = policy,
                       .ramp_steps = 3});
}

/// Gives AdaScale the moments of two workers: pure noise if `noisy`, otherwise no noise.
void observe(LearningRate& learning_rate, bool noisy) {
  const std::vector<float> sum{noisy ? 0.0F : 8.0F};
  learning_rate.observe({8, 2, noisy ? 40.0 : 8.0}, {{sum}});
}

struct Expected {
  double scale;  // of the batch
  double gamma;
  double momentum_scale;
};

void expect_steps(ResizePolicy policy, const std::vector<Expected>& steps) {
  LearningRate learning_rate = made(policy);
  for (std::size_t at = 0; at < steps.size(); ++at) {
    const double batch = steps[at].scale * kReference;
    const Rate rate = learning_rate.step(batch, batch);
    EXPECT_DOUBLE_EQ(rate.gamma, steps[at].gamma) << "step " << at;
    EXPECT_DOUBLE_EQ(rate.momentum_scale, steps[at].momentum_scale) << "step " << at;
    EXPECT_EQ(rate.base, 0.5);
    EXPECT_EQ(rate.value(), 0.5 * rate.gamma);
    EXPECT_EQ(rate, learning_rate.latest());
  }
}

TEST(LearningRate, FollowsEachPolicy) {
  expect_steps(ResizePolicy::kRamp,
               {{1, 1, 1}, {4, 2, 1}, {4, 3, 1}, {4, 4, 1}, {4, 4, 1}, {2, 2, 1}, {2, 2, 1}});
  expect_steps(ResizePolicy::kImmediate, {{1, 1, 1}, {4, 4, 1}, {4, 4, 1}, {2, 2, 1}, {2, 2, 1}});
  expect_steps(ResizePolicy::kRescale,
               {{1, 1, 1}, {4, 4, 0.25}, {4, 4, 1}, {2, 2, 2}, {2, 2, 1}, {0.5, 0.5, 4}});
  expect_steps(ResizePolicy::kReset,
               {{1, 1, 1}, {4, 4, 0}, {4, 4, 1}, {2, 2, 0}, {2, 2, 1}, {2, 2, 1}});
  expect_steps(ResizePolicy::kNone, {{1, 1, 1}, {4, 1, 1}, {4, 1, 1}, {2, 1, 1}, {0.5, 1, 1}});
}

TEST(LearningRate, TakesEightStepsPerGrowthUnlessTold) {
  LearningRate learning_rate({.schedule = Schedule::constant(1), .batch_reference = kReference});
  for (int step = 0; step < 31; ++step) {
    EXPECT_LT(learning_rate.step(4 * kReference, 1).gamma, 4);
  }
  EXPECT_EQ(learning_rate.step(4 * kReference, 1).gamma, 4);
}

TEST(LearningRate, RootRuleTakesTheRootOfTheRampedScale) {
  LearningRate learning_rate = made(ResizePolicy::kRamp, ScalingRule::kSquareRoot);
  for (const double scale : {6.0, 11.0, 16.0, 16.0}) {
    EXPECT_DOUBLE_EQ(learning_rate.step(16 * kReference, 1).gamma, std::sqrt(scale));
  }
  LearningRate rescaled = made(ResizePolicy::kRescale, ScalingRule::kSquareRoot);
  EXPECT_DOUBLE_EQ(rescaled.step(16 * kReference, 1).momentum_scale, 0.25);
}

TEST(LearningRate, AdaScaleIsBetweenOneAndTheLinearRule) {
  LearningRate steady = made(ResizePolicy::kImmediate, ScalingRule::kAdaScale);
  observe(steady, false);
  EXPECT_DOUBLE_EQ(steady.step(4 * kReference, 4 * kReference).gamma, 1);
  LearningRate noisy = made(ResizePolicy::kImmediate, ScalingRule::kAdaScale);
  observe(noisy, true);
  EXPECT_DOUBLE_EQ(noisy.step(4 * kReference, 4 * kReference).gamma, 4);
  // Scale-invariant steps: four times the samples of the former are worth no more than a
  // reference batch, of the latter all of them.
  EXPECT_DOUBLE_EQ(steady.progress(), kReference);
  EXPECT_DOUBLE_EQ(noisy.progress(), 4 * kReference);
  // Half a batch, at an epoch's tail, is half a step.
  observe(steady, false);
  steady.step(4 * kReference, 2 * kReference);
  EXPECT_DOUBLE_EQ(steady.progress(), 1.5 * kReference);
}

TEST(LearningRate, AdaScaleRampsTheScaleThatTheGainIsOf) {
  LearningRate learning_rate = made(ResizePolicy::kRamp, ScalingRule::kAdaScale);
  for (const double gamma : {2.0, 3.0, 4.0, 4.0}) {
    observe(learning_rate, true);
    EXPECT_DOUBLE_EQ(learning_rate.step(4 * kReference, 1).gamma, gamma);
  }
}

TEST(LearningRate, AdaScaleLeavesTheMomentumAloneWhileOnlyTheNoiseChanges) {
  for (const ResizePolicy policy : {ResizePolicy::kRescale, ResizePolicy::kReset}) {
    LearningRate learning_rate = made(policy, ScalingRule::kAdaScale);
    observe(learning_rate, true);
    learning_rate.step(4 * kReference, 1);
    observe(learning_rate, false);
    const Rate rate = learning_rate.step(4 * kReference, 1);
    EXPECT_LT(rate.gamma, 4);
    EXPECT_EQ(rate.momentum_scale, 1);
  }
}

TEST(LearningRate, ScheduleGoesBySamples) {
  LearningRate learning_rate({.schedule = Schedule::step(1, {100}), .batch_reference = 10});
  EXPECT_EQ(learning_rate.step(80, 80).base, 1);
  EXPECT_EQ(learning_rate.step(80, 19).base, 1);
  EXPECT_EQ(learning_rate.step(80, 0).base, 1);
  EXPECT_EQ(learning_rate.progress(), 99);
  EXPECT_EQ(learning_rate.step(80, 1).base, 1);
  EXPECT_EQ(learning_rate.step(80, 80).base, 0.1);
}

TEST(LearningRate, AnotherScheduleGoesOnFromTheProgress) {
  LearningRate finished({.schedule = Schedule::cosine(1, 100), .batch_reference = 10});
  finished.step(100, 100);
  LearningRate learning_rate({.schedule = Schedule::cosine(1, 200), .batch_reference = 10});
  const Schedule given = learning_rate.schedule();
  learning_rate.load(finished.save());
  EXPECT_EQ(learning_rate.step(100, 0).base, 0);
  learning_rate.set_schedule(given);
  EXPECT_DOUBLE_EQ(learning_rate.step(100, 0).base, 0.5);
  EXPECT_EQ(learning_rate.progress(), 100);
}

TEST(LearningRate, LinearRuleWithTheRampIsTheRamp) {
  const auto holds = [] {
    LearningRate learning_rate({.schedule = Schedule::constant(1), .batch_reference = kReference});
    LearningRateRamp ramp({.batch_reference = kReference});
    for (const int workers : *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 40))) {
      for (int step = 0; step < 5; ++step) {
        RC_ASSERT(learning_rate.step(8.0 * workers, 1).value() == ramp.step(8.0 * workers));
      }
    }
    RC_ASSERT(learning_rate.ramp().get() == ramp.get());
  };
  EXPECT_TRUE(rc::check("bit by bit", holds));
}

template <typename T, std::size_t kCount>
T any(const std::array<Named<T>, kCount>& choices) {
  return choices[*rc::gen::inRange<std::size_t>(0, choices.size())].value;
}

/// One step of a random history; the same arguments for all of `rates`.
void any_step(const std::vector<LearningRate*>& rates) {
  const bool noisy = *rc::gen::arbitrary<bool>();
  const double batch = 8.0 * *rc::gen::inRange(1, 20);
  const double samples = *rc::gen::inRange(0, 100);
  for (LearningRate* one : rates) {
    observe(*one, noisy);
    one->step(batch, samples);
    RC_ASSERT(one->save() == rates.front()->save());
  }
}

TEST(LearningRate, JoinerContinuesWithTheSameBitsFromAnyPoint) {
  const auto holds = [] {
    LearningRate member({.schedule = Schedule::cosine(0.3, 2000, 0.01).with_warm_up(200, 0.1),
                         .batch_reference = kReference,
                         .rule = any(kScalingRules),
                         .policy = any(kResizePolicies)});
    // The joiner's options differ in everything.
    LearningRate joiner({.schedule = Schedule::constant(7),
                         .batch_reference = 999,
                         .rule = any(kScalingRules),
                         .policy = any(kResizePolicies),
                         .ramp_steps = 2});
    const int before = *rc::gen::inRange(0, 30);
    for (int step = 0; step < before; ++step) any_step({&member});
    joiner.load(member.save());
    RC_ASSERT(joiner.rule() == member.rule());
    RC_ASSERT(joiner.policy() == member.policy());
    for (int step = 0; step < 30; ++step) {
      any_step({&member, &joiner});
      RC_ASSERT(joiner.latest() == member.latest());
    }
  };
  EXPECT_TRUE(rc::check("rule, policy, ramp, noise and schedule are the members'", holds));
}

TEST(LearningRate, RefusesWhatMakesNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Schedule schedule = Schedule::constant(1);
  EXPECT_THROW(LearningRate({.schedule = schedule}), Error);
  EXPECT_THROW(LearningRate({.schedule = schedule, .batch_reference = nan}), Error);
  EXPECT_THROW(LearningRate({.schedule = schedule, .batch_reference = 1, .ramp_steps = 0}), Error);

  LearningRate learning_rate = made(ResizePolicy::kRamp);
  learning_rate.step(64, 64);
  const auto before = learning_rate.save();
  for (const double batch : {0.0, -1.0, nan, infinity}) {
    EXPECT_THROW(learning_rate.step(batch, 1), Error);
  }
  for (const double samples : {-1.0, nan, infinity}) {
    EXPECT_THROW(learning_rate.step(64, samples), Error);
  }
  for (std::size_t length = 0; length < before.size(); ++length) {
    EXPECT_THROW(learning_rate.load(std::span(before).first(length)), Error) << length;
  }
  for (const std::size_t at : {0U, 1U}) {
    auto bytes = before;
    bytes[at] = std::byte{9};  // no rule, no policy
    EXPECT_THROW(learning_rate.load(bytes), Error);
  }
  EXPECT_EQ(learning_rate.save(), before);
}

TEST(LearningRate, NamesItselfInWhatIsWrongWithItsOptions) {
  for (const ResizePolicy policy : {ResizePolicy::kImmediate, ResizePolicy::kRamp}) {
    try {
      LearningRate({.schedule = Schedule::constant(0.5), .policy = policy});
      FAIL() << "a learning rate without batch_reference";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr("elastic: LearningRate: batch_reference is 0; give"));
    }
  }
}

TEST(LearningRate, AdaScaleMissesItsObservation) {
  LearningRate learning_rate = made(ResizePolicy::kRamp, ScalingRule::kAdaScale);
  observe(learning_rate, true);
  learning_rate.step(32, 32);
  const auto before = learning_rate.save();
  try {
    learning_rate.step(32, 32);
    FAIL() << "a step without observe()";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("observe()"));
  }
  EXPECT_EQ(learning_rate.save(), before);
}

}  // namespace
}  // namespace elastic
