#include "elastic/learning_rate_ramp.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/training_figures.hpp"
#include "elastic/error.hpp"

namespace elastic {
namespace {

constexpr double kReference = 16;

LearningRateRamp ramp_over(std::uint64_t steps) {
  return LearningRateRamp({.batch_reference = kReference, .ramp_steps = steps});
}

void expect_gammas(LearningRateRamp& ramp, double target, const std::vector<double>& expected) {
  for (std::size_t at = 0; at < expected.size(); ++at) {
    EXPECT_DOUBLE_EQ(ramp.step(target * kReference), expected[at])
        << "target " << target << ", step " << at + 1;
    EXPECT_EQ(ramp.gamma(), ramp.get().gamma);
  }
}

TEST(LearningRateRamp, FollowsTheWorkedVectors) {
  LearningRateRamp ramp = ramp_over(5);
  expect_gammas(ramp, 4, {1.6, 2.2, 2.8, 3.4, 4, 4});
  expect_gammas(ramp, 8, {4.8, 5.6, 6.4});
  expect_gammas(ramp, 2, {2, 2});
  expect_gammas(ramp, 4, {2.4, 2.8, 3.2, 3.6, 4});
}

TEST(LearningRateRamp, ReachesTheTargetExactly) {
  LearningRateRamp ramp = ramp_over(7);
  double gamma = 0;
  for (int step = 0; step < 7; ++step) gamma = ramp.step(5.3 * kReference);
  EXPECT_EQ(gamma, 5.3 * kReference / kReference);
}

TEST(LearningRateRamp, TakesEightStepsPerGrowthByDefault) {
  // Without momentum there is no decay to wait for.
  LearningRateRamp ramp({.batch_reference = kReference, .momentum = 0});
  for (int step = 0; step < 19; ++step) EXPECT_LT(ramp.step(2.5 * kReference), 2.5 - 0.01);
  EXPECT_EQ(ramp.get().length, 20U);  // ceil(8 * 2.5)
  EXPECT_EQ(ramp.step(2.5 * kReference), 2.5);
  // From 2.5 to 4 the growth is 1.6.
  EXPECT_GT(ramp.step(4 * kReference), 2.5);
  EXPECT_EQ(ramp.get().length, 13U);
}

TEST(LearningRateRamp, TakesAtLeastAsLongAsTheMomentumKeepsTheSmallBatch) {
  struct Case {
    double momentum;
    double target;
    std::uint64_t length;
  };
  for (const Case& one : {Case{0.9, 2, 30}, Case{0.9, 8, 64}, Case{0.99, 12, 300},
                          Case{0.99, 2, 300}, Case{0, 2, 16}, Case{0, 1.001, 9}}) {
    LearningRateRamp ramp({.batch_reference = kReference, .momentum = one.momentum});
    ramp.step(one.target * kReference);
    EXPECT_EQ(ramp.get().length, one.length) << one.momentum << ", " << one.target;
  }
  LearningRateRamp by_option({.batch_reference = kReference, .ramp_steps = 5, .momentum = 0.99});
  by_option.step(12 * kReference);
  EXPECT_EQ(by_option.get().length, 5U);
}

TEST(LearningRateRamp, KeepsItsSlopeWhenTheTargetChangesWithinIt) {
  const double slope = 7.0 / 64;
  for (const double target : {7.0, 12.0}) {
    LearningRateRamp ramp({.batch_reference = kReference});
    for (int step = 0; step < 32; ++step) ramp.step(8 * kReference);
    EXPECT_DOUBLE_EQ(ramp.gamma(), 4.5);
    int steps = 32;
    for (double before = ramp.gamma(); ramp.gamma() < target; before = ramp.gamma()) {
      ramp.step(target * kReference);
      ASSERT_LE(ramp.gamma() - before, slope + 1e-12) << "step " << steps;
      ++steps;
    }
    EXPECT_EQ(steps, target == 7.0 ? 55 : 101);
    EXPECT_EQ(ramp.gamma(), target);
  }
  // Many changes do not wear it down, and a ramp that is over does not count.
  LearningRateRamp ramp({.batch_reference = kReference});
  for (int step = 0; step < 32; ++step) ramp.step((step % 2 == 0 ? 8 : 7.5) * kReference);
  EXPECT_NEAR(ramp.gamma(), 1 + 32 * slope, 1e-9);
  for (int step = 0; step < 32; ++step) ramp.step(8 * kReference);
  EXPECT_EQ(ramp.gamma(), 8);
  ramp.step(9 * kReference);
  EXPECT_EQ(ramp.get().length, 30U);
}

TEST(LearningRateRamp, ReadsRecordsWithoutASlope) {
  LearningRateRamp member({.batch_reference = kReference});
  for (int step = 0; step < 32; ++step) member.step(8 * kReference);
  auto bytes = member.save();
  bytes.resize(bytes.size() - 16);
  LearningRateRamp loaded({.batch_reference = 7});
  loaded.load(bytes);
  EXPECT_EQ(loaded.get(), member.get());
}

TEST(LearningRateRamp, StaysAtOneOnTheReferenceBatch) {
  LearningRateRamp ramp({.batch_reference = kReference});
  EXPECT_EQ(ramp.gamma(), 1);
  EXPECT_EQ(ramp.step(kReference), 1);
  EXPECT_EQ(ramp.momentum_scale(), 1);
}

TEST(LearningRateRamp, RampsOnWhenTheTargetShrinksButIsNotReached) {
  LearningRateRamp ramp = ramp_over(5);
  expect_gammas(ramp, 4, {1.6});
  // The slope stays at 0.6.
  expect_gammas(ramp, 3.6, {2.2, 2.8, 3.4, 3.6, 3.6});
}

TEST(LearningRateRamp, BothFormsOfMomentumTakeTheSameStepsAtAConstantBaseRate) {
  LearningRateRamp ramp({.batch_reference = kReference});
  const double mu = 0.9;
  const double eta = 0.05;
  double w = 1;  // u form
  double u = 0;
  double x = 1;  // velocity form
  double v = 0;
  int step = 0;
  for (const double target : {1.0, 4.0, 8.0, 2.0, 0.5, 3.0, 3.0, 1.0}) {
    for (int n = 0; n < 6; ++n, ++step) {
      const double gamma = ramp.step(target * kReference);
      const double g = std::sin(0.7 * step) + 0.1 * w;
      u = mu * u + g;
      w -= gamma * eta * u;
      v = mu * ramp.momentum_scale() * v + gamma * eta * g;
      x -= v;
      ASSERT_NEAR(w, x, 1e-12) << "step " << step;
    }
  }
}

TEST(LearningRateRamp, ContinuesFromARecordWithTheSameBits) {
  LearningRateRamp member({.batch_reference = kReference});
  for (int step = 0; step < 5; ++step) member.step(3 * kReference);
  // A joiner counts another world at its start, and so has another reference and length.
  LearningRateRamp joiner({.batch_reference = 999, .ramp_steps = 2});
  LearningRateRamp loader({.batch_reference = 7});
  joiner.restore(member.get());
  loader.load(member.save());
  EXPECT_EQ(joiner.get(), member.get());
  EXPECT_EQ(loader.save(), member.save());
  for (const double target : {3.0, 3.0, 7.0, 7.0, 2.0, 2.3, 2.3}) {
    const auto expected = std::bit_cast<std::uint64_t>(member.step(target * kReference));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(joiner.step(target * kReference)), expected);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(loader.step(target * kReference)), expected);
    EXPECT_EQ(joiner.momentum_scale(), member.momentum_scale());
  }
}

template <typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(LearningRateRamp, RefusesWhatMakesNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(LearningRateRamp({.batch_reference = 0}), Error);
  EXPECT_THROW(LearningRateRamp({.batch_reference = nan}), Error);
  EXPECT_THROW(LearningRateRamp({.batch_reference = 1, .ramp_steps = 0}), Error);
  for (const double momentum : {-0.1, 1.0, nan}) {
    EXPECT_THROW(LearningRateRamp({.batch_reference = 1, .momentum = momentum}), Error);
  }

  // Small numbers, too, as they are.
  EXPECT_EQ(message_of([] { LearningRateRamp({.batch_reference = -1e-9}); }),
            "elastic: LearningRateRamp: batch_reference is -1e-09; give the positive number of "
            "samples per "
            "step that the base rate was chosen for");
  LearningRateRamp ramp = ramp_over(5);
  EXPECT_EQ(message_of([&] { ramp.step(-1e-9); }),
            "elastic: LearningRateRamp: the batch of step() is -1e-09; give the positive number of "
            "samples "
            "of the step over all workers");
  ramp.step(4 * kReference);
  const LearningRateRamp::Record before = ramp.get();
  for (const double batch : {0.0, -1.0, nan, std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(ramp.step(batch), Error);
  }
  LearningRateRamp::Record broken = before;
  broken.gamma = nan;
  EXPECT_THROW(ramp.restore(broken), Error);
  broken = before;
  broken.taken = broken.length + 1;
  EXPECT_THROW(ramp.restore(broken), Error);
  auto bytes = ramp.save();
  bytes.push_back(std::byte{0});
  EXPECT_THROW(ramp.load(bytes), Error);
  bytes.resize(bytes.size() - 2);
  EXPECT_THROW(ramp.load(bytes), Error);
  EXPECT_EQ(ramp.get(), before);
}

TEST(LearningRateRamp, TellsMonitoringWhereItIs) {
  LearningRateRamp ramp({.batch_reference = 8, .ramp_steps = 4});
  ramp.step(16);
  EXPECT_EQ(training_figures().ramp_gamma, 1.25);
  EXPECT_EQ(training_figures().ramp_target, 2);
}

}  // namespace
}  // namespace elastic
