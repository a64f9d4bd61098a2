// The kernels that encode and decode gradients, next to the host's codecs bit by bit: on a device,
// and on the stand-in for the driver.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compression/device_codec.hpp"
#include "compression/half.hpp"
#include "compression/int8.hpp"
#include "compression/top_k.hpp"
#include "cuda/driver_calls.hpp"
#include "unit/drawn_floats.hpp"

namespace elastic::codecs {
namespace {

using kernels::codec::AddDense;
using kernels::codec::AddTopK;
using testing::bits_of;
using testing::drawn_values;
using testing::Gpu;
using testing::GpuArray;
using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

#ifdef CUDA_STAND_IN
constexpr const char* kDriver = CUDA_STAND_IN;
constexpr std::size_t kLarge = 100'000;
#else
constexpr const char* kDriver = "libcuda.so.1";
constexpr std::size_t kLarge = 5'000'000;
#endif
constexpr int kRounds = 40;

class GradientCodec : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef CUDA_STAND_IN
    ::setenv("CUDA_STAND_IN_KERNELS", "1", 1);
#else
    if (Gpu::devices() == 0) GTEST_SKIP() << "no CUDA device";
#endif
    gpu_ = std::make_unique<Gpu>(0, kDriver);
    auto cuda = device::Cuda::load(kDriver);
    ASSERT_TRUE(cuda.ok()) << cuda.status().message();
    auto device = device::CudaDevice::open(cuda.value(), 0, std::make_shared<device::StallWatch>());
    ASSERT_TRUE(device.ok()) << device.status().message();
    std::span<const std::byte> image = kernels::codec::image();
#ifdef CUDA_STAND_IN
    static constexpr std::array<std::byte, 1> kAny{};  // a build without CUDA has no image
    image = kAny;
#endif
    auto codec = DeviceCodec::load(device.value(), image);
    ASSERT_TRUE(codec.ok()) << codec.status().message();
    codec_ = std::move(codec).value();
  }

  /// Waits until the work that `queue` queues is done.
  template <class Queue>
  void perform(const Queue& queue) {
    const device::CurrentContext here = codec_->device()->enter();
    void* const stream = codec_->device()->to_device();
    const Status status = queue(stream);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(codec_->device()->cuda().api().stream_synchronize(stream), 0);
  }

  std::size_t drawn_count(std::mt19937& random) const {
    if (large_) return kLarge + random() % 100;
    const std::size_t most[] = {1, 300, 5000, 20'000};
    return 1 + random() % most[random() % std::size(most)];
  }

  template <typename Half>
  void compare_halves(std::mt19937& random, float scale);
  void compare_int8(std::mt19937& random, std::uint32_t block);
  void compare_top_k(std::mt19937& random, bool has_momentum);

  bool large_ = false;
  std::unique_ptr<Gpu> gpu_;
  std::unique_ptr<DeviceCodec> codec_;
};

template <typename Half>
void GradientCodec::compare_halves(std::mt19937& random, float scale) {
  constexpr bool kIsBfloat16 = std::is_same_v<Half, bfloat16>;
  const std::size_t count = drawn_count(random);
  const Floats gradient_values = drawn_values(random, count, false);
  Floats residual = drawn_values(random, count, true);
  const GpuArray<float> gradient(*gpu_, gradient_values, random() % 4);
  const GpuArray<float> kept(*gpu_, residual);
  const GpuArray<float> staged(*gpu_, count);
  const GpuArray<std::uint16_t> halves(*gpu_, count);
  for (std::size_t at = 0; at < count; ++at) residual[at] += gradient_values[at];
  std::vector<Half> right(count);
  to_half<Half>(residual, scale, right);
  perform([&](void* stream) {
    return codec_->queue(
        kernels::codec::EncodeHalf{gradient.data(), kept.data(), staged.data(), halves.data(),
                                   count, scale, false, kIsBfloat16},
        stream);
  });
  const std::vector<std::uint16_t> sent = halves.read();
  for (std::size_t at = 0; at < count; ++at) ASSERT_EQ(sent[at], right[at].bits) << at;
  ASSERT_EQ(bits_of(staged.read()), bits_of(residual));
  Floats sums(count);
  from_half<Half>(right, scale, sums);
  for (float& value : sums) value /= 7.0F;
  perform([&](void* stream) {
    return codec_->queue(kernels::codec::DecodeHalf{halves.data(), gradient.data(), count, scale, 7,
                                                    false, kIsBfloat16},
                         stream);
  });
  ASSERT_EQ(bits_of(gradient.read()), bits_of(sums));
}

void GradientCodec::compare_int8(std::mt19937& random, std::uint32_t block) {
  Floats residual = drawn_values(random, drawn_count(random), random() % 2 == 0);
  const std::size_t count = residual.size();
  const GpuArray<float> values(*gpu_, residual);
  Bytes right(int8_bytes(count, block));
  // At an address that fits no float.
  const GpuArray<std::uint8_t> bytes(*gpu_, Bytes(right.size()), 1);
  perform([&](void* stream) {
    return codec_->queue(kernels::codec::EncodeInt8{values.data(), bytes.data(), count, block},
                         stream);
  });
  encode_int8(residual, block, right);
  ASSERT_EQ(bytes.read(), right);
  ASSERT_EQ(bits_of(values.read()), bits_of(residual));
  Floats sums = drawn_values(random, count, true);
  const GpuArray<float> on_device(*gpu_, sums);
  perform([&](void* stream) {
    AddDense two{};
    two.blocks[0] = two.blocks[1] = {bytes.data(), block};
    two.sums = on_device.data();
    two.count = count;
    two.used = 2;
    two.divisor = 3;
    return codec_->queue(two, stream);
  });
  add_int8(right, block, sums);
  add_int8(right, block, sums);
  for (float& value : sums) value /= 3.0F;
  ASSERT_EQ(bits_of(on_device.read()), bits_of(sums));
}

void GradientCodec::compare_top_k(std::mt19937& random, bool has_momentum) {
  Floats v = drawn_values(random, drawn_count(random), random() % 2 == 0);
  const std::size_t count = v.size();
  Floats u = drawn_values(random, has_momentum ? count : 0, false);
  const std::size_t sent = 1 + random() % (random() % 3 == 0 ? count : count / 50 + 1);
  const GpuArray<float> values(*gpu_, v);
  const GpuArray<float> momentum(*gpu_, u);
  Bytes right(top_k_bytes(sent));
  const GpuArray<std::uint8_t> bytes(*gpu_, Bytes(right.size()), 1);
  perform([&](void* stream) {
    return codec_->queue(
        kernels::codec::EncodeTopK{values.data(), has_momentum ? momentum.data() : nullptr, nullptr,
                                   nullptr, bytes.data(), count, static_cast<std::uint32_t>(sent),
                                   0},
        stream);
  });
  encode_top_k(v, u, sent, right);
  ASSERT_EQ(bytes.read(), right) << count << " elements, " << sent << " of them sent";
  ASSERT_EQ(bits_of(values.read()), bits_of(v));
  ASSERT_EQ(bits_of(momentum.read()), bits_of(u));
  Floats sums = drawn_values(random, count, true);
  const GpuArray<float> on_device(*gpu_, sums);
  perform([&](void* stream) {
    return codec_->queue(
        AddTopK{bytes.data(), on_device.data(), count, static_cast<std::uint32_t>(sent)}, stream);
  });
  ASSERT_TRUE(add_top_k(right, sums));
  ASSERT_EQ(bits_of(on_device.read()), bits_of(sums));
}

TEST_F(GradientCodec, HalvesAreThoseOfTheHost) {
  for (int seed = 1; seed <= kRounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(static_cast<unsigned>(seed));
    compare_halves<float16>(random, seed % 2 == 0 ? 1.0F : 1024.0F);
    compare_halves<bfloat16>(random, 1);
    if (HasFatalFailure()) return;
  }
}

TEST_F(GradientCodec, BlocksOfInt8AreThoseOfTheHost) {
  for (int seed = 1; seed <= kRounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(static_cast<unsigned>(seed));
    constexpr std::uint32_t kBlocks[] = {1, 31, 100, 256, 300, 65536};
    compare_int8(random, kBlocks[random() % std::size(kBlocks)]);
    if (HasFatalFailure()) return;
  }
}

TEST_F(GradientCodec, TheGreatestAreThoseOfTheHost) {
  for (int seed = 1; seed <= kRounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(static_cast<unsigned>(seed));
    compare_top_k(random, seed % 2 == 0);
    if (HasFatalFailure()) return;
  }
}

/// More elements than threads, parts and histograms take at once.
TEST_F(GradientCodec, LargeTensorsAreEncodedAsOnTheHost) {
  large_ = true;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    compare_halves<float16>(random, 1);
    compare_int8(random, 256);
    compare_top_k(random, seed % 2 == 0);
    if (HasFatalFailure()) return;
  }
}

TEST_F(GradientCodec, MomentumIsCorrectedAsOnTheHost) {
  std::mt19937 random(1);
  for (int round = 0; round < kRounds; ++round) {
    const std::size_t count = drawn_count(random);
    const Floats gradient = drawn_values(random, count, false);
    Floats v = drawn_values(random, count, true);
    Floats u = drawn_values(random, count, true);
    const GpuArray<float> on_device(*gpu_, gradient);
    const GpuArray<float> kept(*gpu_, v);
    const GpuArray<float> kept_momentum(*gpu_, u);
    const GpuArray<float> staged(*gpu_, count);
    const GpuArray<float> staged_momentum(*gpu_, count);
    perform([&](void* stream) {
      return codec_->queue(
          kernels::codec::Stage{on_device.data(), kept.data(), kept_momentum.data(), staged.data(),
                                staged_momentum.data(), count, 0.9F},
          stream);
    });
    correct_momentum(gradient, 0.9F, u, v);
    ASSERT_EQ(bits_of(staged.read()), bits_of(v));
    ASSERT_EQ(bits_of(staged_momentum.read()), bits_of(u));
  }
}

}  // namespace
}  // namespace elastic::codecs
