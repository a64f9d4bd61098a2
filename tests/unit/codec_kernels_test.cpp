// The arithmetic of the kernels for gradients on devices, element by element, next to the host's
// codecs: bit by bit, over drawn and special values.
#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/kernels/device/codec/parameters.hpp"
#include "compression/half.hpp"
#include "compression/int8.hpp"
#include "compression/top_k.hpp"
#include "cuda/host_kernels.hpp"
#include "unit/drawn_floats.hpp"

namespace elastic::codecs {
namespace {

using kernels::codec::Kernel;
using testing::bits_of;
using testing::drawn_values;
using testing::run_on_host;
using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

std::size_t drawn_count(std::mt19937& random) {
  constexpr std::size_t kMost[] = {1, 20, 300, 5000, 20000};
  return random() % (kMost[random() % std::size(kMost)] + 1);
}

template <typename Parameters>
void launch(Kernel kernel, const Parameters& parameters) {
  run_on_host(kernel, &parameters);
}

void add_on_device(kernels::codec::DenseBlock block, bool begins, Floats& sums) {
  kernels::codec::AddDense one{};
  one.blocks[0] = block;
  one.sums = sums.data();
  one.count = sums.size();
  one.used = 1;
  one.divisor = 1;
  one.begins = begins;
  launch(Kernel::kAddDense, one);
}

/// gradient + kept, as the host stages it.
Floats staged_on_host(const Floats& gradient, const Floats& kept) {
  Floats staged = kept;
  for (std::size_t at = 0; at < staged.size(); ++at) staged[at] += gradient[at];
  return staged;
}

template <typename Half>
void compare_halves(std::mt19937& random, float scale) {
  const std::size_t count = drawn_count(random);
  const Floats gradient = drawn_values(random, count, false);
  const Floats kept = drawn_values(random, count, true);
  Floats residual = staged_on_host(gradient, kept);
  std::vector<Half> halves(count);
  to_half<Half>(residual, scale, halves);
  Floats result(count);
  from_half<Half>(halves, scale, result);
  for (float& value : result) value /= 3.0F;

  constexpr bool kIsBfloat16 = std::is_same_v<Half, bfloat16>;
  std::vector<std::uint16_t> device_halves(count);
  Floats device_residual(count);
  launch(Kernel::kEncodeHalf,
         kernels::codec::EncodeHalf{gradient.data(), kept.data(), device_residual.data(),
                                    device_halves.data(), count, scale, false, kIsBfloat16});
  for (std::size_t at = 0; at < count; ++at) {
    ASSERT_EQ(device_halves[at], halves[at].bits) << gradient[at] << " and " << kept[at];
  }
  ASSERT_EQ(bits_of(device_residual), bits_of(residual));
  Floats device_result(count);
  launch(Kernel::kDecodeHalf, kernels::codec::DecodeHalf{device_halves.data(), device_result.data(),
                                                         count, scale, 3, false, kIsBfloat16});
  ASSERT_EQ(bits_of(device_result), bits_of(result));
}

TEST(CodecKernels, HalvesAreThoseOfTheHost) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    constexpr float kScales[] = {1, 1, 1024, 0x1p-24F, 0x1p24F};
    compare_halves<float16>(random, kScales[random() % std::size(kScales)]);
    compare_halves<bfloat16>(random, 1);
    if (HasFatalFailure()) return;
  }
}

/// Doubles go by way of floats.
TEST(CodecKernels, HalvesOfDoublesAreThoseOfTheirFloats) {
  const std::vector<double> doubles{0.1, -3, 1e300, 1e-300, 65504.0 * 2};
  const Floats kept{0.25F, 0, 0, 1, 0};
  Floats floats(doubles.begin(), doubles.end());
  Floats residual = staged_on_host(floats, kept);
  std::vector<float16> halves(5);
  to_half<float16>(residual, 2, halves);
  std::vector<std::uint16_t> device_halves(5);
  Floats device_residual(5);
  launch(Kernel::kEncodeHalf,
         kernels::codec::EncodeHalf{doubles.data(), kept.data(), device_residual.data(),
                                    device_halves.data(), 5, 2, true, false});
  EXPECT_EQ(bits_of(device_residual), bits_of(residual));
  std::vector<double> result(5);
  launch(Kernel::kDecodeHalf,
         kernels::codec::DecodeHalf{device_halves.data(), result.data(), 5, 2, 3, true, false});
  for (std::size_t at = 0; at < 5; ++at) {
    EXPECT_EQ(device_halves[at], halves[at].bits);
    EXPECT_EQ(result[at], static_cast<double>(static_cast<float>(halves[at]) / 2) / 3);
  }
}

TEST(CodecKernels, BlocksOfInt8AreThoseOfTheHost) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    constexpr std::uint32_t kBlocks[] = {1, 2, 31, 100, 256, 65536};
    const std::uint32_t block = kBlocks[random() % std::size(kBlocks)];
    const Floats values = drawn_values(random, drawn_count(random), random() % 2 == 0);
    Bytes bytes(int8_bytes(values.size(), block));
    Floats residual = values;
    encode_int8(residual, block, bytes);
    Floats sums = drawn_values(random, values.size(), true);

    // At an address that fits no float.
    Bytes device_bytes(bytes.size() + 1);
    Floats device_residual = values;
    launch(Kernel::kEncodeInt8,
           kernels::codec::EncodeInt8{device_residual.data(), device_bytes.data() + 1,
                                      values.size(), block});
    ASSERT_EQ(Bytes(device_bytes.begin() + 1, device_bytes.end()), bytes);
    ASSERT_EQ(bits_of(device_residual), bits_of(residual));
    Floats device_sums = sums;
    add_on_device({device_bytes.data() + 1, block}, false, device_sums);
    add_int8(bytes, block, sums);
    ASSERT_EQ(bits_of(device_sums), bits_of(sums));
  }
}

/// Encodes `values` as the host and as a device, and compares.
void compare_top_k(Floats values, Floats momentum, std::size_t sent, std::mt19937& random) {
  Floats device_values = values;
  Floats device_momentum = momentum;
  Bytes bytes(top_k_bytes(sent));
  encode_top_k(values, momentum, sent, bytes);

  Bytes device_bytes(bytes.size() + 1);
  kernels::codec::TopKSelection selection{};
  std::vector<kernels::codec::Chosen> parts(kernels::codec::parts_of(values.size()));
  kernels::codec::EncodeTopK parameters{device_values.data(),
                                        momentum.empty() ? nullptr : device_momentum.data(),
                                        &selection,
                                        parts.data(),
                                        device_bytes.data() + 1,
                                        values.size(),
                                        static_cast<std::uint32_t>(sent),
                                        0};
  launch(Kernel::kBeginTopK, parameters);
  for (; parameters.pass < kernels::codec::kPasses; ++parameters.pass) {
    launch(Kernel::kCountDigits, parameters);
    launch(Kernel::kTakeDigit, parameters);
  }
  for (const Kernel kernel : {Kernel::kCountChosen, Kernel::kPlaceParts, Kernel::kWriteChosen}) {
    launch(kernel, parameters);
  }
  ASSERT_EQ(Bytes(device_bytes.begin() + 1, device_bytes.end()), bytes);
  ASSERT_EQ(bits_of(device_values), bits_of(values));
  ASSERT_EQ(bits_of(device_momentum), bits_of(momentum));

  Floats sums = drawn_values(random, values.size(), true);
  Floats device_sums = sums;
  ASSERT_TRUE(add_top_k(bytes, sums));
  launch(Kernel::kAddTopK,
         kernels::codec::AddTopK{device_bytes.data() + 1, device_sums.data(), values.size(),
                                 static_cast<std::uint32_t>(sent)});
  ASSERT_EQ(bits_of(device_sums), bits_of(sums));
}

TEST(CodecKernels, TheGreatestAreThoseOfTheHost) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::size_t count = drawn_count(random);
    const Floats values = drawn_values(random, count, random() % 2 == 0);
    const Floats momentum = random() % 2 == 0 ? Floats() : drawn_values(random, count, false);
    const std::size_t sent = random() % 3 == 0 ? count : random() % (count + 1);
    if (sent == 0) continue;  // a tensor without elements needs no kernel
    compare_top_k(values, momentum, sent, random);
    if (HasFatalFailure()) return;
  }
}

TEST(CodecKernels, MomentumIsCorrectedAsOnTheHost) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::size_t count = drawn_count(random);
    const Floats gradient = drawn_values(random, count, false);
    const Floats kept = drawn_values(random, count, true);
    const Floats kept_momentum = drawn_values(random, count, true);
    Floats u = kept_momentum;
    Floats v = kept;
    correct_momentum(gradient, 0.9F, u, v);
    Floats device_u(count);
    Floats device_v(count);
    launch(Kernel::kStage, kernels::codec::Stage{gradient.data(), kept.data(), kept_momentum.data(),
                                                 device_v.data(), device_u.data(), count, 0.9F});
    ASSERT_EQ(bits_of(device_u), bits_of(u));
    ASSERT_EQ(bits_of(device_v), bits_of(v));
    launch(Kernel::kStage, kernels::codec::Stage{gradient.data(), kept.data(), nullptr,
                                                 device_v.data(), nullptr, count, 0.9F});
    ASSERT_EQ(bits_of(device_v), bits_of(staged_on_host(gradient, kept)));
  }
}

TEST(CodecKernels, WholeTensorsStayAsTheyAre) {
  std::mt19937 random(1);
  const Floats values = drawn_values(random, 1003, true);
  Floats cleared = values;
  Floats momentum(values.size(), 1);
  Bytes bytes(4 * values.size() + 1);
  launch(Kernel::kEncodeWhole,
         kernels::codec::EncodeWhole{cleared.data(), cleared.data(), momentum.data(),
                                     bytes.data() + 1, values.size()});
  EXPECT_EQ(std::memcmp(bytes.data() + 1, values.data(), 4 * values.size()), 0);
  EXPECT_EQ(cleared, Floats(values.size()));
  EXPECT_EQ(momentum, Floats(values.size()));
  Floats sums(values.size(), -1);
  add_on_device({bytes.data() + 1, 0}, true, sums);
  EXPECT_EQ(sums, values);
  launch(Kernel::kClear, kernels::codec::Clear{sums.data(), sums.size()});
  EXPECT_EQ(sums, Floats(values.size()));
}

}  // namespace
}  // namespace elastic::codecs
