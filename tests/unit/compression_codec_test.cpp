#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <rapidcheck.h>
#include <vector>

#include <gtest/gtest.h>

#include "compression/half.hpp"
#include "compression/int8.hpp"
#include "compression/top_k.hpp"
#include "compression/two_bit.hpp"
#include "unit/random_gradient.hpp"

namespace elastic::codecs {
namespace {

using testing::gradient;
using Floats = std::vector<float>;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The sent part of some values, and the residual.
struct Parts {
  Floats sent;
  Floats kept;
};

Parts by_int8(Floats values, std::uint32_t block) {
  std::vector<std::uint8_t> bytes(int8_bytes(values.size(), block));
  encode_int8(values, block, bytes);
  Parts parts{Floats(values.size()), values};
  add_int8(bytes, block, parts.sent);
  return parts;
}

Parts by_two_bit(Floats values, float threshold) {
  std::vector<std::uint8_t> bytes(two_bit_bytes(values.size()));
  encode_two_bit(values, threshold, bytes);
  Parts parts{Floats(values.size()), values};
  add_two_bit(bytes, threshold, parts.sent);
  return parts;
}

Parts by_top_k(Floats values, std::size_t count, std::span<float> momentum = {}) {
  std::vector<std::uint8_t> bytes(top_k_bytes(count));
  encode_top_k(values, momentum, count, bytes);
  Parts parts{Floats(values.size()), values};
  EXPECT_TRUE(add_top_k(bytes, parts.sent));
  return parts;
}

template <typename Half>
Parts by_half(Floats values, float scale) {
  std::vector<Half> halves(values.size());
  to_half<Half>(values, scale, halves);
  Parts parts{Floats(values.size()), values};
  from_half<Half>(halves, scale, parts.sent);
  return parts;
}

/// sent + kept == values, without any rounding.
bool conserves(const Parts& parts, const Floats& values) {
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (double{parts.sent[at]} + double{parts.kept[at]} != double{values[at]}) return false;
  }
  return true;
}

Floats random_gradient() {
  return *gradient(*rc::gen::inRange<std::size_t>(0, 700));
}

/// Any number there is.
Floats random_floats() {
  const auto number = rc::gen::suchThat(
      rc::gen::map(rc::gen::arbitrary<std::uint32_t>(),
                   [](std::uint32_t bits) { return std::bit_cast<float>(bits * 2654435761U); }),
      [](float value) { return std::isfinite(value); });
  return *rc::gen::container<Floats>(*rc::gen::inRange<std::size_t>(0, 40), number);
}

TEST(HalfCodec, WhatIsNotSentIsKept) {
  EXPECT_TRUE(rc::check("f16 within its range, at any scale; bf16", [] {
    const Floats values = random_gradient();
    const float scale = std::ldexp(1.0F, *rc::gen::inRange(-24, 13));
    const Parts halves = by_half<float16>(values, scale);
    RC_ASSERT(conserves(halves, values));
    for (std::size_t at = 0; at < values.size(); ++at) {
      const float most = std::max(std::abs(values[at]) * 0x1p-11F, 0x1p-25F / scale);
      RC_ASSERT(std::abs(halves.kept[at]) <= most);
    }
    RC_ASSERT(conserves(by_half<bfloat16>(values, 1), values));
  }));
}

TEST(HalfCodec, OverflowIsInfAndKeepsNothing) {
  const Parts parts = by_half<float16>({70000, -70000, 1, kNan, kInf}, 1);
  EXPECT_EQ(parts.sent[0], kInf);
  EXPECT_EQ(parts.sent[1], -kInf);
  EXPECT_TRUE(std::isnan(parts.sent[3]));
  EXPECT_EQ(parts.sent[4], kInf);
  EXPECT_EQ(parts.kept, Floats(5));
  const Parts scaled = by_half<float16>({70000, -70000}, 0.5F);
  EXPECT_TRUE(conserves(scaled, {70000, -70000}));
  EXPECT_NEAR(scaled.sent[0], 70000, 32);
}

TEST(Int8Codec, IsWithinHalfAStepAndKeepsTheRest) {
  EXPECT_TRUE(rc::check("any size, any block", [] {
    const Floats values = random_gradient();
    const auto block = *rc::gen::inRange<std::uint32_t>(1, 400);
    const Parts parts = by_int8(values, block);
    RC_ASSERT(conserves(parts, values));
    for (std::size_t first = 0; first < values.size(); first += block) {
      const std::size_t end = std::min(values.size(), first + block);
      float most = 0;
      for (std::size_t at = first; at < end; ++at) most = std::max(most, std::abs(values[at]));
      for (std::size_t at = first; at < end; ++at) {
        RC_ASSERT(std::abs(parts.kept[at]) <= most / 254 * 1.00001F);
      }
    }
  }));
}

TEST(Int8Codec, AnyNumbersComeBackFinite) {
  EXPECT_TRUE(rc::check("all magnitudes there are", [] {
    const Floats values = random_floats();
    const Parts parts = by_int8(values, 16);
    RC_ASSERT(conserves(parts, values));
    RC_ASSERT(std::ranges::all_of(parts.sent, is_finite));
  }));
  for (const float extreme : {std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
                              std::numeric_limits<float>::denorm_min(), 0.0F}) {
    const Floats values{extreme, -extreme, extreme / 3};
    const Parts parts = by_int8(values, 256);
    EXPECT_TRUE(conserves(parts, values)) << extreme;
    EXPECT_TRUE(std::ranges::all_of(parts.sent, is_finite)) << extreme;
  }
}

TEST(Int8Codec, RoundsTiesToEvenSteps) {
  const Parts parts = by_int8({127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F}, 256);
  EXPECT_EQ(parts.sent, (Floats{127, 0, 2, 2, 0, -2}));
}

TEST(Int8Codec, NotANumberIsSeenInItsBlock) {
  for (const float bad : {kNan, kInf, -kInf}) {
    const Parts parts = by_int8({1, 2, bad, 4, 5}, 4);
    for (std::size_t at = 0; at < 4; ++at) EXPECT_TRUE(std::isnan(parts.sent[at]));
    EXPECT_EQ(parts.sent[4], 5);
    EXPECT_EQ(parts.kept, (Floats{1, 2, 0, 4, 0}));
  }
}

TEST(TwoBitCodec, SendsTheThresholdAndKeepsTheRest) {
  EXPECT_TRUE(rc::check("any size", [] {
    const Floats values = random_gradient();
    const float threshold = *rc::gen::element(0.25F, 0.5F, 1.0F);
    const Parts parts = by_two_bit(values, threshold);
    for (std::size_t at = 0; at < values.size(); ++at) {
      const float v = values[at];
      const float right = v >= threshold ? threshold : v <= -threshold ? -threshold : 0;
      RC_ASSERT(parts.sent[at] == right);
      RC_ASSERT(parts.kept[at] == v - right);
      const double lost = double{v} - double{right} - double{parts.kept[at]};
      RC_ASSERT(std::abs(lost) <= std::abs(double{v}) * 0x1p-24);
    }
  }));
}

TEST(TwoBitCodec, NotANumberIsSent) {
  const Parts parts = by_two_bit({0.5F, kNan, kInf, -kInf, -0.7F}, 0.5F);
  for (const std::size_t at : {1U, 2U, 3U}) {
    EXPECT_TRUE(std::isnan(parts.sent[at]));
    EXPECT_EQ(parts.kept[at], 0);
  }
  EXPECT_EQ(parts.sent[0], 0.5F);
  EXPECT_EQ(parts.sent[4], -0.5F);
}

/// The simple algorithm for reference: sorts; of equal values the first comes first.
std::vector<std::uint32_t> greatest_by_sorting(const Floats& values, std::size_t count) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return std::abs(values[a]) > std::abs(values[b]);
  });
  order.resize(count);
  std::ranges::sort(order);
  return order;
}

TEST(TopK, PicksTheGreatestAndOfEqualOnesTheFirst) {
  EXPECT_EQ(greatest(Floats{1, -3, 3, 2, -3}, 2), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(greatest(Floats{0, 0, 0}, 2), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(greatest(Floats{9, kInf, kNan, 8}, 2), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_TRUE(greatest(Floats{}, 0).empty());
  EXPECT_TRUE(rc::check("as sorting does", [] {
    const Floats values = random_gradient();
    const auto count = *rc::gen::inRange<std::size_t>(0, values.size() + 1);
    RC_ASSERT(greatest(values, count) == greatest_by_sorting(values, count));
  }));
}

TEST(TopK, WhatIsNotSentIsKept) {
  EXPECT_TRUE(rc::check("any size and count", [] {
    const Floats values = random_gradient();
    const auto count = *rc::gen::inRange<std::size_t>(0, values.size() + 1);
    RC_ASSERT(conserves(by_top_k(values, count), values));
  }));
}

TEST(TopK, NotANumberIsSentFirstAndNeverKept) {
  Floats momentum{1, 1, kNan, 1};
  const Parts parts = by_top_k({5, kNan, kNan, 6}, 1, momentum);
  EXPECT_TRUE(std::isnan(parts.sent[1]));
  EXPECT_EQ(parts.kept, (Floats{5, 0, 0, 6}));
  EXPECT_EQ(momentum, (Floats{1, 0, 0, 1}));
}

TEST(TopK, AnIndexBeyondTheTensorIsRefused) {
  Floats values{1, 2, 3};
  std::vector<std::uint8_t> bytes(top_k_bytes(1));
  encode_top_k(values, {}, 1, bytes);
  Floats two(2);
  EXPECT_FALSE(add_top_k(bytes, two));
}

TEST(TopK, SendsARoundedShareAndAtLeastOne) {
  EXPECT_EQ(top_k_count(1000, 0.01), 10U);
  EXPECT_EQ(top_k_count(100, 0.07), 7U);
  EXPECT_EQ(top_k_count(5, 0.001), 1U);
  EXPECT_EQ(top_k_count(0, 0.5), 0U);
  EXPECT_EQ(top_k_count(7, 1), 7U);
}

TEST(TopK, TheWarmUpIsThatOfThePaper) {
  const Compression dgc{.kind = CompressionKind::kTopK, .ratio = 0.001, .warm_up_steps = 4};
  const double sparsity[] = {0.75, 0.9375, 0.984375, 0.996, 0.999};
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    EXPECT_NEAR(1 - ratio_at(dgc, epoch), sparsity[epoch], 5e-4) << epoch;
  }
  EXPECT_EQ(ratio_at(dgc, 1000), 0.001);
  const Compression half{.kind = CompressionKind::kTopK, .ratio = 0.5, .warm_up_steps = 4};
  EXPECT_EQ(ratio_at(half, 0), 0.5);
}

/// Algorithm 4 of the paper for one element after the other, with masks instead of lists.
TEST(TopK, MomentumCorrectionAndMaskingAreThePapers) {
  EXPECT_TRUE(rc::check("over some steps", [] {
    const auto size = *rc::gen::inRange<std::size_t>(1, 60);
    const auto count = *rc::gen::inRange<std::size_t>(1, size + 1);
    const float m = 0.9F;
    Floats u(size);
    Floats v(size);
    Floats right_u(size);
    Floats right_v(size);
    for (int step = 0; step < 5; ++step) {
      const Floats g = *gradient(size);
      correct_momentum(g, m, u, v);
      const Parts parts = by_top_k(v, count, u);
      v = parts.kept;
      for (std::size_t i = 0; i < size; ++i) {
        const float decayed = m * right_u[i];
        right_u[i] = decayed + g[i];
        right_v[i] += right_u[i];
      }
      std::vector<bool> mask(size);
      for (const std::uint32_t i : greatest_by_sorting(right_v, count)) mask[i] = true;
      for (std::size_t i = 0; i < size; ++i) {
        RC_ASSERT(parts.sent[i] == (mask[i] ? right_v[i] : 0));
        if (mask[i]) right_u[i] = right_v[i] = 0;
      }
      RC_ASSERT(u == right_u);
      RC_ASSERT(v == right_v);
    }
  }));
}

}  // namespace
}  // namespace elastic::codecs
