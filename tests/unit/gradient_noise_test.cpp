#include "elastic/gradient_noise.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <rapidcheck.h>
#include <vector>

#include <gtest/gtest.h>

#include "elastic/error.hpp"

namespace elastic {
namespace {

/// A worker's contribution to a step.
struct Share {
  std::vector<float> sum;
  double samples;
};

void observe(GradientNoise& noise, const std::vector<Share>& shares, double reference) {
  GradientNoise::Moments total{};
  std::vector<float> sum(shares.front().sum.size());
  for (const Share& share : shares) {
    const auto moments = GradientNoise::moments({{share.sum}}, share.samples);
    for (std::size_t at = 0; at < total.size(); ++at) total[at] += moments[at];
    for (std::size_t at = 0; at < sum.size(); ++at) sum[at] += share.sum[at];
  }
  noise.observe(total, {{sum}}, reference);
}

std::vector<Share> any_shares() {
  std::vector<Share> shares(*rc::gen::inRange<std::size_t>(2, 9));
  const auto elements = *rc::gen::inRange<std::size_t>(1, 20);
  for (Share& share : shares) {
    share.samples = *rc::gen::inRange(1, 64);
    for (std::size_t at = 0; at < elements; ++at) {
      share.sum.push_back(static_cast<float>(*rc::gen::inRange(-1000, 1000)) / 16);
    }
  }
  return shares;
}

TEST(GradientNoise, FollowsTheWorkedVectors) {
  GradientNoise noise;
  // Two workers, two samples each: means (2, 0) and (0, 4), so (1, 2) over all.
  observe(noise, {{{4, 0}, 2}, {{0, 8}, 2}}, 2);
  // Squared norms 4 and 16: sum n_i |g_i|^2 = 40; V = 40 - 4 * 5 = 20; mu^2 = 5 - 20/4.
  EXPECT_DOUBLE_EQ(noise.variance(), 20);
  EXPECT_DOUBLE_EQ(noise.square(), 0);
  EXPECT_DOUBLE_EQ(noise.gain(2, 2), 2);
  // Means (3, 1) and (3, -1): V = 2 * 10 + 2 * 10 - 4 * 9 = 4; mu^2 = 9 - 1. The mean of both:
  observe(noise, {{{6, 2}, 2}, {{6, -2}, 2}}, 2);
  EXPECT_DOUBLE_EQ(noise.variance(), 12);
  EXPECT_DOUBLE_EQ(noise.square(), 4);
  EXPECT_DOUBLE_EQ(noise.gain(2, 2), (6.0 + 4) / (3 + 4));
  EXPECT_DOUBLE_EQ(noise.gain(8, 2), 10 / (0.75 + 4));
  EXPECT_DOUBLE_EQ(noise.gain(0.5, 2), 10.0 / 16);
  EXPECT_EQ(noise.gain(1, 2), 1);
}

/// Algorithm 1 of the paper, for equal batches of the reference size.
TEST(GradientNoise, GivesTheGainOfThePaper) {
  const auto holds = [] {
    std::vector<Share> shares = any_shares();
    for (Share& share : shares) share.samples = 4;
    const auto workers = static_cast<double>(shares.size());
    double squares = 0;
    std::vector<double> mean(shares.front().sum.size());
    for (const Share& share : shares) {
      for (std::size_t at = 0; at < mean.size(); ++at) {
        const double g = double{share.sum[at]} / 4;
        squares += g * g;
        mean[at] += g / workers;
      }
    }
    double square_of_mean = 0;
    for (const double value : mean) square_of_mean += value * value;
    const double sigma = (squares - workers * square_of_mean) / (workers - 1);
    const double mu = std::max(squares / workers - sigma, 0.0);
    RC_PRE(sigma > 1e-3);
    GradientNoise noise;
    observe(noise, shares, 4);
    const double expected = (sigma + mu) / (sigma / workers + mu);
    RC_ASSERT(std::abs(noise.gain(workers, 4) - expected) < 1e-6 * expected);
  };
  EXPECT_TRUE(rc::check("gain of one step", holds));
}

TEST(GradientNoise, GainIsBetweenOneAndTheScale) {
  const auto holds = [] {
    GradientNoise noise;
    const int steps = *rc::gen::inRange(0, 5);
    for (int step = 0; step < steps; ++step) observe(noise, any_shares(), 16);
    const double scale = *rc::gen::inRange(1, 400) / 16.0;
    const double gain = noise.gain(scale, 16);
    RC_ASSERT(gain >= std::min(1.0, scale));
    RC_ASSERT(gain <= std::max(1.0, scale));
    RC_ASSERT(noise.gain(2 * scale, 16) >= gain);
  };
  EXPECT_TRUE(rc::check("and grows with it", holds));
}

TEST(GradientNoise, WithoutNoiseTheGainIsOne) {
  GradientNoise noise;
  observe(noise, {{{3, 4, 5}, 1}, {{6, 8, 10}, 2}, {{12, 16, 20}, 4}}, 1);
  EXPECT_EQ(noise.variance(), 0);
  EXPECT_EQ(noise.gain(7, 1), 1);
}

TEST(GradientNoise, WithNothingButNoiseTheGainIsTheScale) {
  GradientNoise noise;
  observe(noise, {{{3, -4}, 1}, {{-3, 4}, 1}}, 1);
  EXPECT_EQ(noise.square(), 0);
  EXPECT_DOUBLE_EQ(noise.gain(2, 1), 2);
  EXPECT_DOUBLE_EQ(noise.gain(100, 1), 100);
}

TEST(GradientNoise, BeforeTheFirstEstimateTheGainIsTheLesser) {
  GradientNoise noise;
  EXPECT_EQ(noise.gain(8, 1), 1);
  EXPECT_EQ(noise.gain(0.25, 1), 0.25);
}

/// Sum of gradients of samples around a known mean, with a known variance.
Share draw(std::mt19937_64& random, int samples, std::size_t elements, double mean,
           double deviation) {
  Share share{std::vector<float>(elements), static_cast<double>(samples)};
  for (int sample = 0; sample < samples; ++sample) {
    for (float& value : share.sum) {
      // Uniform: the standard library's normal distribution is not the same everywhere.
      const double uniform = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
      value += static_cast<float>(mean + deviation * std::sqrt(12.0) * uniform);
    }
  }
  return share;
}

TEST(GradientNoise, FindsMeanAndVarianceWhateverTheShares) {
  constexpr std::size_t kElements = 50;
  std::mt19937_64 random(1);
  GradientNoise noise;
  for (int step = 0; step < 400; ++step) {
    std::vector<Share> shares;
    for (const int samples : {1, 7, 0, 24}) {
      shares.push_back(draw(random, samples, kElements, 0.2, 0.5));
    }
    observe(noise, shares, 32);
  }
  EXPECT_EQ(noise.estimates(), 400U);
  EXPECT_NEAR(noise.variance(), kElements * 0.25, 0.05 * kElements * 0.25);
  EXPECT_NEAR(noise.square(), kElements * 0.04, 0.05 * kElements * 0.04);
}

TEST(GradientNoise, AveragesGoOverAThousandReferenceBatches) {
  GradientNoise noise;
  // Opposite gradients of one sample each, of these norms: V is 2 * norm^2.
  const auto step = [&noise](float norm, double reference) {
    observe(noise, {{{norm}, 1}, {{-norm}, 1}}, reference);
  };
  step(1, 0.004);  // a batch of 500 references: weight 1/2, but 1 for the first
  EXPECT_DOUBLE_EQ(noise.variance(), 2);
  step(2, 0.004);
  EXPECT_DOUBLE_EQ(noise.variance(), 5);
  step(3, 0.004);
  EXPECT_DOUBLE_EQ(noise.variance(), 11.5);
  step(0, 2);  // a batch of one reference: the mean of four
  EXPECT_DOUBLE_EQ(noise.variance(), 11.5 * 3 / 4);
}

TEST(GradientNoise, NeedsTwoWorkersWithSamples) {
  GradientNoise noise;
  observe(noise, {{{3, 4}, 2}}, 1);
  observe(noise, {{{3, 4}, 2}, {{0, 0}, 0}}, 1);
  EXPECT_EQ(noise.estimates(), 0U);
  observe(noise, {{{3, 4}, 2}, {{1, 1}, 1}, {{0, 0}, 0}}, 1);
  EXPECT_EQ(noise.estimates(), 1U);
}

TEST(GradientNoise, LeavesOutStepsThatAreNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  GradientNoise noise;
  observe(noise, {{{1}, 1}, {{2}, 1}}, 1);
  const auto before = noise.save();
  observe(noise, {{{infinity}, 1}, {{2}, 1}}, 1);
  observe(noise, {{{std::nanf("")}, 1}, {{2}, 1}}, 1);
  EXPECT_EQ(noise.save(), before);
}

TEST(GradientNoise, ComesBackFromItsBytes) {
  const auto holds = [] {
    GradientNoise noise;
    observe(noise, any_shares(), 16);
    GradientNoise loaded;
    loaded.load(noise.save());
    const auto shares = any_shares();
    observe(noise, shares, 16);
    observe(loaded, shares, 16);
    RC_ASSERT(loaded.save() == noise.save());
  };
  EXPECT_TRUE(rc::check("and goes on with the same bits", holds));
}

TEST(GradientNoise, RefusesWhatMakesNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  GradientNoise noise;
  observe(noise, {{{1}, 1}, {{2}, 1}}, 1);
  const auto before = noise.save();
  EXPECT_THROW(GradientNoise::moments({}, -1), Error);
  EXPECT_THROW(GradientNoise::moments({}, nan), Error);
  EXPECT_THROW(noise.observe({4, 2, 9}, {}, 0), Error);
  EXPECT_THROW(noise.observe({4, 2, 9}, {}, nan), Error);
  EXPECT_THROW(noise.observe({4, 2, -9}, {}, 1), Error);
  auto bytes = before;
  bytes.pop_back();
  EXPECT_THROW(noise.load(bytes), Error);
  bytes = before;
  bytes[7] = std::byte{0xff};  // a negative variance
  EXPECT_THROW(noise.load(bytes), Error);
  EXPECT_EQ(noise.save(), before);
}

}  // namespace
}  // namespace elastic
