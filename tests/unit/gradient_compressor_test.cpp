#include "elastic/gradient_compressor.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>
#include <rapidcheck.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/training_figures.hpp"
#include "elastic/global_batch.hpp"
#include "elastic/learning_rate.hpp"
#include "unit/compressing_world.hpp"
#include "unit/random_gradient.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;
using Kind = CompressionKind;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const auto kKinds = ::testing::Values("none", "f16", "f16:1024", "bf16", "int8", "int8:7",
                                      "two_bit:0.5", "top_k:0.1", "top_k:1", "top_k:0.1:0:4");
const auto kKindsWithMomentum = ::testing::Values("top_k:0.05:0.9");

std::string test_name(const ::testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace_if(
      name, [](char character) { return character == ':' || character == '.'; }, '_');
  return name;
}

class EveryCompression : public ::testing::TestWithParam<std::string> {
 protected:
  static Compression compression() { return find_compression(GetParam()).value(); }
};

/// Momentum gives sums of momenta, not of gradients.
class WithoutMomentum : public EveryCompression {};

/// Over many calls: what all have given is what has come out and what is held back.
TEST_P(WithoutMomentum, ConservesWhatWasGiven) {
  EXPECT_TRUE(rc::check("given == sums + residuals", [] {
    const auto ranks = *rc::gen::inRange<std::size_t>(1, 5);
    const auto sizes =
        *rc::gen::container<std::vector<std::size_t>>(3, rc::gen::inRange<std::size_t>(0, 300));
    CompressingWorld world(ranks, compression());
    std::vector<std::vector<double>> left;  // given - sums, per tensor
    std::vector<std::vector<double>> size;  // sums of magnitudes, for what rounding may do
    for (const std::size_t count : sizes) {
      left.emplace_back(count);
      size.emplace_back(count);
    }
    for (int step = 0; step < 4; ++step) {
      std::vector<std::vector<Tensor>> tensors(ranks);
      for (auto& its : tensors) {
        for (std::size_t at = 0; at < sizes.size(); ++at) {
          its.push_back(*gradient(sizes[at]));
          for (std::size_t i = 0; i < sizes[at]; ++i) {
            left[at][i] += double{its[at][i]};
            size[at][i] += std::abs(double{its[at][i]});
          }
        }
      }
      world.allreduce(tensors);
      for (std::size_t at = 0; at < sizes.size(); ++at) {
        for (std::size_t i = 0; i < sizes[at]; ++i) left[at][i] -= double{tensors[0][at][i]};
      }
    }
    // Each hop of an allreduce of 16-bit floats rounds, and no residual keeps the rounding error.
    const double rounding = compression().kind == Kind::kBF16  ? 0x1p-6
                            : compression().kind == Kind::kF16 ? 0x1p-9
                                                               : 0x1p-20;
    for (std::size_t at = 0; at < sizes.size(); ++at) {
      for (std::size_t i = 0; i < sizes[at]; ++i) {
        double held = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          const auto residual = world.rank(rank).residual(CompressingWorld::name(at));
          if (!residual.empty()) held += double{residual[i]};
        }
        RC_ASSERT(std::abs(left[at][i] - held) <= rounding * size[at][i] + 0x1p-22);
      }
    }
  }));
}

/// A training in which workers come and go while the rate follows the batch by a ramp: what the
/// weights have not got of the gradients is what the workers hold back, at the present step size.
/// So nothing that is late is worth more or less than it was.
TEST_P(WithoutMomentum, LateGradientsKeepTheirWorthThroughResizes) {
  constexpr std::size_t kCount = 100;
  constexpr double kSamples = 16;  // of a worker's step
  const std::size_t worlds[] = {2, 8, 1, 3, 4};
  LearningRate learning_rate(
      {.schedule = Schedule::constant(0.05), .batch_reference = kSamples, .ramp_steps = 10});
  CompressingWorld world(worlds[0], compression());
  RandomStream random({.seed = 7});
  // Each hop of an allreduce of 16-bit floats rounds, and no residual keeps the rounding error.
  // Where the other ranks contribute zeros, there is nothing to round.
  const bool halves = compression().kind == Kind::kBF16 || compression().kind == Kind::kF16;
  std::vector<double> missing(kCount);  // in the weights, next to those of an uncompressed training
  std::vector<double> moved(kCount);    // sums of magnitudes, for what rounding may do
  std::optional<GradientCompressor::StepSize> before;
  const auto for_each_residual = [&](std::size_t rank, const auto& use) {
    const auto residual = world.rank(rank).residual(CompressingWorld::name(0));
    const double size = before->rate / before->batch;
    for (std::size_t at = 0; at < residual.size(); ++at) use(at, size * double{residual[at]});
  };
  std::size_t present = worlds[0];
  for (const std::size_t ranks : worlds) {
    for (std::size_t lost = ranks; lost < present; ++lost) {
      for_each_residual(lost, [&](std::size_t at, double owed) { missing[at] -= owed; });
    }
    world.resize(ranks);
    present = ranks;
    for (int step = 0; step < 6; ++step) {
      const double batch = kSamples * static_cast<double>(ranks);
      const Rate rate = learning_rate.step(batch, batch);
      const GradientCompressor::StepSize now{rate.value(), batch};
      std::vector<Tensor> tensors(ranks, Tensor(kCount));
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (before) world.rank(rank).rescale(*before, now);
        for (std::size_t at = 0; at < kCount; ++at) {
          if (halves && rank > 0) continue;
          tensors[rank][at] = static_cast<float>(kSamples * (2 * random.uniform() - 1));
          missing[at] += now.rate / batch * double{tensors[rank][at]};
          moved[at] += now.rate / batch * std::abs(double{tensors[rank][at]});
        }
      }
      before = now;
      const Tensor sum = world.allreduce(std::move(tensors));
      for (std::size_t at = 0; at < kCount; ++at) missing[at] -= now.rate / batch * double{sum[at]};
    }
    std::vector<double> owed(kCount);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for_each_residual(rank, [&](std::size_t at, double its) { owed[at] += its; });
    }
    for (std::size_t at = 0; at < kCount; ++at) {
      ASSERT_NEAR(missing[at], owed[at], 0x1p-20 * moved[at])
          << "element " << at << ", " << ranks << " ranks";
    }
  }
}

TEST_P(EveryCompression, WholeContributionsHoldNothingBack) {
  CompressingWorld world(2, compression());
  Tensor mine{1, -0.3F, 0.01F, 7, 0.2F, 0.25F, -3, 2, 0.125F, 11};
  world.allreduce({mine, mine});
  const Tensor held = [&] {
    const auto residual = world.rank(0).residual(CompressingWorld::name(0));
    return Tensor(residual.begin(), residual.end());
  }();
  world.rank(0).send_whole();
  const Tensor sum = world.allreduce({mine, Tensor(10)});
  const bool halves = compression().kind == Kind::kF16 || compression().kind == Kind::kBF16;
  for (const float value : world.rank(0).residual(CompressingWorld::name(0))) {
    EXPECT_NEAR(value, 0, halves ? 0.05 : 0);
  }
  if (compression().kind == Kind::kTwoBit) {
    // Rank 1 sends at most the threshold, rank 0 all it has.
    for (std::size_t at = 0; at < sum.size(); ++at) {
      EXPECT_NEAR(sum[at], mine[at] + held[at], 0.5) << at;
    }
  }
}

TEST_P(EveryCompression, NotANumberArrivesAndIsGoneAfterwards) {
  for (const float bad : {kNan, kInf, -kInf}) {
    CompressingWorld world(3, compression());
    Tensor one{1, 2, bad, 4, 5, 6, 7, 8, 9, 10};
    const Tensor sum = world.allreduce({Tensor(10, 1), one, Tensor(10, 1)});
    EXPECT_FALSE(std::isfinite(sum[2]));
    EXPECT_GE(world.rank(0).latest().non_finite, 1U);
    for (int step = 0; step < 3; ++step) {
      for (const float value : world.allreduce({Tensor(10, 1), Tensor(10, 1), Tensor(10, 1)})) {
        EXPECT_TRUE(std::isfinite(value));
      }
      EXPECT_EQ(world.rank(0).latest().non_finite, 0U);
    }
  }
}

TEST_P(EveryCompression, AnAverageIsTheSumOverTheContributors) {
  CompressingWorld sums(3, compression());
  CompressingWorld averages(3, compression());
  const std::vector<Tensor> tensors{Tensor(300, 0.75F), Tensor(300, 3), Tensor(300, -1.5F)};
  const Tensor sum = sums.allreduce(tensors);
  const Tensor average = averages.allreduce(tensors, ReduceOp::kAverage);
  for (std::size_t at = 0; at < sum.size(); ++at) EXPECT_EQ(average[at], sum[at] / 3);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryCompression, kKinds, test_name);
INSTANTIATE_TEST_SUITE_P(Momentum, EveryCompression, kKindsWithMomentum, test_name);
INSTANTIATE_TEST_SUITE_P(Kinds, WithoutMomentum, kKinds, test_name);

double norm(const GradientCompressor& compressor, const std::string& tensor) {
  double squares = 0;
  for (const float value : compressor.residual(tensor)) squares += double{value} * double{value};
  return std::sqrt(squares);
}

/// Log lines of `calls` calls with these gradients, of two tensors on two ranks.
std::string log_of(CompressingWorld& world, int calls, const Tensor& gradient) {
  ::testing::internal::CaptureStderr();
  for (int call = 0; call < calls; ++call) {
    const std::vector<Tensor> one{Tensor(gradient.size()), gradient};
    std::vector<std::vector<Tensor>> tensors{one, one};
    world.allreduce(tensors);
  }
  return ::testing::internal::GetCapturedStderr();
}

TEST(GradientCompressor, TellsTheNormOfWhatItHoldsBack) {
  CompressingWorld world(1, {.kind = Kind::kTwoBit, .threshold = 1});
  std::vector<std::vector<Tensor>> tensors{{Tensor(19, 4), Tensor(100, 0.5F)}};
  world.allreduce(tensors);
  EXPECT_NEAR(world.rank(0).latest().residual_norm, std::sqrt(19 * 9 + 100 * 0.25), 1e-12);
  EXPECT_EQ(world.rank(0).total().residual_norm, world.rank(0).latest().residual_norm);
}

TEST(GradientCompressor, WarnsOnceOfAResidualThatGrowsWithoutEnd) {
  CompressingWorld small(2, {.kind = Kind::kTwoBit, .threshold = 0.5});
  const Tensor gradient{3, -2, 0.1F, 0};
  EXPECT_EQ(log_of(small, 30, gradient), "");
  const std::string told = log_of(small, 40, gradient);
  EXPECT_THAT(told, HasSubstr("compression two_bit:0.5: tensor 'tensor 1' holds back more"));
  EXPECT_THAT(told, HasSubstr("take a threshold in the size of the gradient's larger elements"));
  EXPECT_EQ(std::ranges::count(told, '\n'), 2) << "one line of each rank:\n" << told;
  EXPECT_EQ(log_of(small, 100, gradient), "");
}

TEST(GradientCompressor, DoesNotWarnOfAResidualThatIsSent) {
  CompressingWorld world(2, {.kind = Kind::kTwoBit, .threshold = 4});
  EXPECT_EQ(log_of(world, 100, {3, -2, 0.1F, 0}), "");
  // A large gradient at the start takes a while to be sent.
  CompressingWorld late(2, {.kind = Kind::kTwoBit, .threshold = 1});
  EXPECT_EQ(log_of(late, 1, {90, -80, 70, 0}), "");
  EXPECT_EQ(log_of(late, 100, {0.5F, 0.25F, 0.1F, 0}), "");
  CompressingWorld other(2, {.kind = Kind::kTopK, .ratio = 0.25});
  EXPECT_EQ(log_of(other, 100, {3, -2, 0.1F, 0}), "");
}

TEST(GradientCompressor, ReportsBytes) {
  const std::size_t count = 25600;
  struct Case {
    std::string text;
    std::uint64_t encoded;
    std::uint64_t sent;
  };
  const std::uint64_t header = 8 + 16;  // of the message, of the tensor's block
  for (const Case& one :
       {Case{"none", count * 4, count * 4 * 3 / 2}, Case{"f16", count * 2, count * 2 * 3 / 2},
        Case{"int8", count + 100 * 4 + header, 3 * (count + 100 * 4 + header)},
        Case{"two_bit:1", count / 4 + header, 3 * (count / 4 + header)},
        Case{"top_k:0.01", 256 * 8 + header, 3 * (256 * 8 + header)},
        Case{"top_k:0.6", count * 4 + header, 3 * (count * 4 + header)}}) {
    CompressingWorld world(4, find_compression(one.text).value());
    const std::uint64_t encoded_before = training_figures().encoded_bytes;
    for (int step = 0; step < 2; ++step) world.allreduce(std::vector<Tensor>(4, Tensor(count, 1)));
    const GradientCompressor::Traffic right{
        count * 4, one.encoded, one.sent, count * 4 * 3 / 2, 0, norm(world.rank(2), "tensor 0")};
    EXPECT_EQ(world.rank(2).latest(), right) << one.text;
    EXPECT_EQ(world.rank(2).total().sent, 2 * one.sent) << one.text;
    EXPECT_EQ(world.rank(2).total().sent_uncompressed, count * 4 * 3) << one.text;
    EXPECT_EQ(training_figures().encoded_bytes - encoded_before, 4 * 2 * one.encoded) << one.text;
  }
}

TEST(GradientCompressor, RescalesWhatItHoldsBack) {
  CompressingWorld world(1, {.kind = Kind::kTwoBit, .threshold = 1});
  world.allreduce({Tensor{3, 0.25F}});
  world.rank(0).rescale({0.1, 16}, {0.4, 32});
  EXPECT_THAT(world.rank(0).residual("tensor 0"), ::testing::ElementsAre(1, 0.125F));
  world.rank(0).rescale({0.8, 128}, {0.1, 16});
  EXPECT_THAT(world.rank(0).residual("tensor 0"), ::testing::ElementsAre(1, 0.125F));
  for (const double bad : {0.0, -1.0, 1e300, double{kNan}, double{kInf}}) {
    EXPECT_THROW(world.rank(0).rescale({bad, 1}, {1, 1}), Error) << bad;
    EXPECT_THROW(world.rank(0).rescale({1, bad}, {1, 1}), Error) << bad;
    EXPECT_THROW(world.rank(0).rescale({1, 1}, {bad, 1}), Error) << bad;
    EXPECT_THROW(world.rank(0).rescale({1, 1}, {1, bad}), Error) << bad;
  }
  EXPECT_THAT(world.rank(0).residual("tensor 0"), ::testing::ElementsAre(1, 0.125F));
  world.rank(0).reset();
  EXPECT_TRUE(world.rank(0).residual("tensor 0").empty());
}

TEST(GradientCompressor, JoinersNeedNoWarmUp) {
  const Compression compression{.kind = Kind::kTopK, .ratio = 0.01, .warm_up_steps = 10};
  CompressingWorld world(2, compression);
  world.rank(1).begin_at(10);
  Tensor values(1000);
  for (std::size_t at = 0; at < values.size(); ++at) values[at] = static_cast<float>(at + 1);
  world.allreduce({values, values});
  EXPECT_EQ(world.rank(0).latest().encoded, 250U * 8 + 24);
  EXPECT_EQ(world.rank(1).latest().encoded, 10U * 8 + 24);
}

}  // namespace
}  // namespace elastic::testing
