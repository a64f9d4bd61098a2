// The kernels that pack, unpack and convert, checked against the host.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/kernels/cast.hpp"
#include "collectives/kernels/reduce.hpp"
#include "tests/gpu/pack_fixture.hpp"

namespace elastic::gpu {
namespace {

std::vector<std::size_t> drawn_counts(Draw& draw) {
  std::vector<std::size_t> counts(draw.below(12));
  for (std::size_t& count : counts) {
    const std::size_t bounds[] = {3, 40, 3000, 90'000};
    count = draw.below(bounds[draw.below(4)]);
  }
  return counts;
}

class PackOfTypes : public PackKernels, public testing::WithParamInterface<PackTypes> {};

TEST_P(PackOfTypes, DrawnCasesAreAsOnTheHost) {
  Packer packer;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    const Direction direction = draw.one_in(2) ? Direction::kPack : Direction::kUnpack;
    PackCase one = draw.place(GetParam(), direction, drawn_counts(draw), draw.one_in(3));
    one.scale = draw.scale(one.tensor_dtype);
    const OnDevice on_device(one, draw);
    launch(packer, on_device.request());
    on_device.expect_done();
    if (HasFailure()) return;
  }
}

TEST_P(PackOfTypes, EveryAlignmentAndAFewElements) {
  Packer packer;
  Draw draw(5);
  for (const std::size_t count : {1U, 15U, 17U, 200U}) {
    for (std::size_t from = 0; from < 16; ++from) {
      for (std::size_t to = 0; to < 16; to += 1 + draw.below(3)) {
        SCOPED_TRACE(std::to_string(count) + " elements " + std::to_string(from) + " and " +
                     std::to_string(to) + " off");
        PackCase one = draw.place(GetParam(), Direction::kPack, {count}, true);
        one.tensors[0].offset += from;
        one.bucket_offset += to;
        one.scale = draw.scale(one.tensor_dtype);
        const OnDevice on_device(one, draw);
        launch(packer, on_device.request());
        on_device.expect_done();
        if (HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackOfTypes, testing::ValuesIn(kPackTypes),
                         [](const auto& of) { return name_of(of.param); });

TEST_F(PackKernels, EveryHalfIsWidenedAndRoundedAsOnTheHost) {
  Packer packer;
  std::vector<std::byte> halves(65536 * sizeof(std::uint16_t));
  for (std::size_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    std::memcpy(halves.data() + i * sizeof(bits), &bits, sizeof(bits));
  }
  for (const DType wide : {DType::kF32, DType::kF64}) {
    for (const DType half : {DType::kF16, DType::kBF16}) {
      Draw draw(1);
      PackCase one = draw.place({wide, half}, Direction::kUnpack, {65536}, true);
      const DeviceMemory bucket(halves);
      const DeviceMemory tensor(one.tensor_bytes);
      const std::vector<TensorRange> ranges = {{tensor.data(), 65536}};
      PackRequest request{Direction::kUnpack, wide, half, ranges, bucket.data(), {}};
      launch(packer, request);
      std::vector<std::byte> widened(one.tensor_bytes);
      one.tensors[0].offset = one.bucket_offset = 0;
      std::vector<std::byte> source = halves;
      pack_on_host(one, widened, source);
      widened.resize(65536 * size_of(wide));
      EXPECT_EQ(tensor.read(0, widened.size()), widened);

      request.direction = one.direction = Direction::kPack;
      launch(packer, request);
      pack_on_host(one, widened, source);
      EXPECT_EQ(bucket.read(), source);
    }
  }
}

/// The host casts if an allreduce goes through host memory, and the ranks' results must be equal.
TEST_F(PackKernels, ScaledHalvesAreThoseOfTheHostsKernels) {
  Packer packer;
  constexpr std::size_t kCount = 20'000;
  for (const DType wide : {DType::kF32, DType::kF64}) {
    for (const DType half : {DType::kF16, DType::kBF16}) {
      for (const double scale : {1.0, 1024.0, 0x1p-24}) {
        Draw draw(7);
        const std::vector<std::byte> values = draw.bytes_of(wide, kCount * size_of(wide));
        const DeviceMemory tensor(values);
        const DeviceMemory bucket(kCount * size_of(half));
        const std::vector<TensorRange> ranges = {{tensor.data(), kCount}};
        launch(packer, {Direction::kPack, wide, half, ranges, bucket.data(), {scale, 1}});
        std::vector<std::byte> halves(kCount * size_of(half));
        kernels::cast(wide, values.data(), kCount, scale, half, halves.data());
        EXPECT_EQ(bucket.read(), halves);
        launch(packer, {Direction::kUnpack, wide, half, ranges, bucket.data(), {1 / scale, 3}});
        std::vector<std::byte> widened(values.size());
        kernels::widen(half, halves.data(), kCount, 1 / scale, 3, wide, widened.data());
        EXPECT_EQ(tensor.read(), widened);
      }
    }
  }
}

TEST_F(PackKernels, AveragesAreThoseOfTheHostsKernels) {
  Packer packer;
  for (const DType dtype : kDTypes) {
    if (dtype == DType::kBool) continue;  // has no average
    for (const std::uint32_t workers : {1U, 2U, 3U, 6U, 7U, 64U, 1000U}) {
      Draw draw(workers);
      constexpr std::size_t kCount = 20'000;
      std::vector<std::byte> values = draw.bytes_of(dtype, kCount * size_of(dtype));
      std::fill_n(values.begin(), 64, std::byte{0});
      for (std::size_t i = 1; i < 8; ++i)
        values[8 * i - 1] = std::byte{0x80};  // negative zeros, too
      const DeviceMemory bucket(values);
      const std::vector<TensorRange> in_place = {{bucket.data(), kCount}};
      const PackRequest request{Direction::kUnpack, dtype,         dtype,
                                in_place,           bucket.data(), {1, workers}};
      launch(packer, request);
      if (workers > 1) kernels::divide(dtype, values.data(), kCount, workers);
      EXPECT_EQ(bucket.read(), values) << static_cast<int>(dtype) << " / " << workers;
    }
  }
}

TEST_F(PackKernels, TensorsInTheirPlacesAreScaledThere) {
  Packer packer;
  Draw draw(3);
  const std::vector<std::byte> before = draw.bytes_of(DType::kF32, 4 * 100'003);
  const DeviceMemory bucket(before);
  const DeviceMemory elsewhere(before);
  auto* const values = bucket.data();
  // The middle one is elsewhere, and the bucket is not aligned.
  const std::vector<TensorRange> tensors = {
      {values + 4, 1001}, {elsewhere.data() + 8, 50'000}, {values + 4 * 51'002, 40'001}};
  launch(packer, {Direction::kPack, DType::kF32, DType::kF32, tensors, values + 4, {0.25, 3}});
  std::vector<std::byte> expected = before;
  std::vector<std::byte> source = before;
  const PackCase one{Direction::kPack,
                     DType::kF32,
                     DType::kF32,
                     {0.25, 3},
                     {{4, 1001}, {8, 50'000}, {4 * 51'002, 40'001}},
                     4,
                     0,
                     0};
  pack_on_host(one, source, expected);
  EXPECT_EQ(bucket.read(), expected);
  EXPECT_EQ(elsewhere.read(), before);
}

TEST_F(PackKernels, NothingIsNothing) {
  Packer packer;
  launch(packer, {});
  const std::vector<TensorRange> empty(300);
  launch(packer, {Direction::kPack, DType::kF32, DType::kF32, empty, nullptr, {}});
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(PackKernels, MoreThanFourGibibytes) {
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  constexpr std::size_t kBytes = (std::size_t{9} << 29) + 5;
  if (free < 2 * kBytes + (std::size_t{1} << 30)) {
    GTEST_SKIP() << "the device has " << (free >> 20) << " MiB left of " << (total >> 20);
  }
  const DeviceMemory tensor(kBytes);
  const DeviceMemory bucket(kBytes);
  constexpr std::size_t kStripe = (std::size_t{1} << 28) + 1;
  for (std::size_t at = 0; at < kBytes; at += kStripe) {
    const int value = static_cast<int>(at / kStripe) + 1;
    ASSERT_EQ(cudaMemset(tensor.data() + at, value, std::min(kStripe, kBytes - at)), cudaSuccess);
  }
  Packer packer;
  const std::vector<TensorRange> tensors = {{tensor.data(), kBytes}};
  launch(packer, {Direction::kPack, DType::kU8, DType::kU8, tensors, bucket.data(), {}});
  for (std::size_t at = kStripe; at < kBytes; at += kStripe) {
    const std::size_t size = std::min<std::size_t>(100'000, kBytes - at + 50'000);
    EXPECT_EQ(bucket.read(at - 50'000, size), tensor.read(at - 50'000, size)) << at;
  }
  EXPECT_EQ(bucket.read(kBytes - 99, 99), tensor.read(kBytes - 99, 99));
}

}  // namespace
}  // namespace elastic::gpu
