// A compressed allreduce of tensors on a device, next to that of a GradientCompressor in host
// memory: the same bits over several calls, some of which fail.
#include "compression/device_allreduce.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/driver_calls.hpp"
#include "unit/drawn_floats.hpp"

namespace elastic::codecs {
namespace {

using testing::bits_of;
using testing::drawn_values;
using testing::Gpu;
using testing::GpuArray;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

struct Lost {};

constexpr std::array<std::byte, 1> kImage{};
constexpr int kRanks = 35;  // more than one kernel adds up

class DeviceAllreduceTest : public ::testing::TestWithParam<const char*> {
 protected:
  DeviceAllreduceTest() : gpu_(0, CUDA_STAND_IN) { ::setenv("CUDA_STAND_IN_KERNELS", "1", 1); }
  ~DeviceAllreduceTest() override {
    ::unsetenv("CUDA_STAND_IN_FAIL");
    ::unsetenv("CUDA_STAND_IN_KERNELS");
  }

  Contributors contributors() {
    if (fails_) throw Lost{};
    if (then_fails_ != nullptr) ::setenv("CUDA_STAND_IN_FAIL", then_fails_, 1);
    return {std::make_shared<const std::vector<WorkerId>>(kRanks), 1};
  }

  /// The calls of one of kRanks ranks. The others have contributed nothing to a sum of halves, and
  /// the same as this rank to an exchange.
  GradientCompressor::Collectives collectives() {
    return {[this](std::span<const TensorView>, ReduceOp) { return contributors(); },
            [this](std::span<const std::uint8_t> block) {
              Gathered<std::uint8_t> gathered;
              for (int rank = 0; rank < kRanks; ++rank) {
                gathered.values.insert(gathered.values.end(), block.begin(), block.end());
                gathered.counts.push_back(block.size());
              }
              gathered.contributors = contributors();
              return gathered;
            },
            [this](std::span<const CastTensor>, ReduceOp, CudaStream) { return contributors(); }};
  }

  bool fails_ = false;
  const char* then_fails_ = nullptr;  // the function of the driver that fails after the collective
  Gpu gpu_;
  const Compression compression_ = find_compression(GetParam()).value();
  const GradientCompressor::Collectives collectives_ = collectives();
  GradientCompressor host_{collectives_, compression_};
  DeviceAllreduce device_{collectives_, compression_, CUDA_STAND_IN, kImage};
};

struct Pair {
  Floats host;
  GpuArray<float> device;
};

TEST_P(DeviceAllreduceTest, HasTheBitsOfTheHostAlsoAfterFailures) {
  std::mt19937 random(7);
  GradientCompressor::Traffic traffic;
  for (int call = 0; call < 12; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    std::vector<Pair> pairs;
    for (const std::size_t count : {5000U, 0U, 1U, 333U}) {
      Floats values = drawn_values(random, count, call != 5);
      pairs.push_back({values, GpuArray<float>(gpu_, values)});
    }
    const char* const names[] = {"a", "b", "c", "d"};
    std::vector<NamedTensor> host;
    std::vector<NamedTensor> device;
    for (std::size_t at = 0; at < 4; ++at) {
      host.push_back({names[at], view(std::span(pairs[at].host)), at == 3});
      device.push_back(
          {names[at], cuda_view(pairs[at].device.data(), pairs[at].device.count()), at == 3});
    }
    const bool whole = call == 8;
    const ReduceOp op = call % 2 == 0 ? ReduceOp::kAverage : ReduceOp::kSum;
    const auto expect_unchanged = [&] {
      for (const Pair& pair : pairs) EXPECT_EQ(bits_of(pair.device.read()), bits_of(pair.host));
      const auto kept = host_.residual("a");
      if (call > 0) {
        EXPECT_EQ(bits_of(device_.residual("a")), bits_of({kept.begin(), kept.end()}));
      }
    };
    DeviceCodec* const codec = device_.codec_of(device, {});
    ASSERT_NE(codec, nullptr);
    fails_ = true;
    EXPECT_THROW(device_.allreduce(*codec, device, op, {}, whole, traffic), Lost);
    fails_ = false;
    expect_unchanged();
    if (call == 3) {
      ::setenv("CUDA_STAND_IN_FAIL", "cuLaunchKernel:1", 1);
      EXPECT_THROW(device_.allreduce(*codec, device, op, {}, whole, traffic), Error);
      ::unsetenv("CUDA_STAND_IN_FAIL");
      expect_unchanged();
    }
    device_.allreduce(*codec, device, op, {}, whole, traffic);
    host_.send_whole(whole);
    host_.grouped_allreduce(host, op);
    for (const Pair& pair : pairs) {
      ASSERT_EQ(bits_of(pair.device.read()), bits_of(pair.host));
    }
    for (const char* const name : {"a", "b", "c"}) {
      const auto kept = host_.residual(name);
      ASSERT_EQ(bits_of(device_.residual(name)), bits_of({kept.begin(), kept.end()}));
    }
    if (call == 6) {
      host_.rescale({2, 1}, {1, 4});
      ASSERT_TRUE(device_.residuals().rescale(8).ok());
    }
  }
}

TEST_P(DeviceAllreduceTest, SaysWhatIsLeftWhenADeviceFailsBehindTheExchange) {
  const GpuArray<float> array(gpu_, Floats(100, 1));
  const NamedTensor tensor{"a", cuda_view(array.data(), array.count())};
  GradientCompressor::Traffic traffic;
  DeviceCodec* const codec = device_.codec_of({&tensor, 1}, {});
  ASSERT_NE(codec, nullptr);
  device_.allreduce(*codec, {&tensor, 1}, ReduceOp::kSum, {}, false, traffic);
  const Floats kept = device_.residual("a");
  const bool as_halves =
      compression_.kind == CompressionKind::kF16 || compression_.kind == CompressionKind::kBF16;
  then_fails_ = as_halves ? "cuLaunchKernel:1" : "cuMemcpyHtoDAsync_v2:1";
  try {
    device_.allreduce(*codec, {&tensor, 1}, ReduceOp::kSum, {}, false, traffic);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("end this worker"));
  }
  ::unsetenv("CUDA_STAND_IN_FAIL");
  EXPECT_EQ(bits_of(device_.residual("a")), bits_of(kept));
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceAllreduceTest,
                         ::testing::Values("f16:16", "bf16", "int8:100", "top_k:0.03",
                                           "top_k:0.03:0.9:4"));

}  // namespace
}  // namespace elastic::codecs
