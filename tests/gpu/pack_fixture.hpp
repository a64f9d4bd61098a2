#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/kernels/device/packer.hpp"
#include "tests/gpu/device_memory.hpp"
#include "tests/gpu/pack_reference.hpp"
#include "tests/pack_types.hpp"

namespace elastic::gpu {

using kernels::device::Direction;
using kernels::device::Packer;
using kernels::device::PackPlan;
using kernels::device::PackRequest;
using kernels::device::Scale;
using kernels::device::TensorRange;

/// Draws cases and what is in memory; the same for the same seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  bool one_in(std::size_t n) { return below(n) == 0; }

  /// Any bits, and for floats many of the values at which they change their ways.
  std::vector<std::byte> bytes_of(DType dtype, std::size_t bytes);
  /// Tensors of the counts, with gaps between them.
  PackCase place(PackTypes types, Direction direction, const std::vector<std::size_t>& counts,
                 bool aligned);
  Scale scale(DType dtype);

 private:
  std::mt19937_64 random_;
};

/// A case on the device, next to what is to come of it.
class OnDevice {
 public:
  OnDevice(const PackCase& one, Draw& draw);

  PackRequest request() const;
  /// Draws new contents of both memories.
  void fill(Draw& draw);
  /// Has the case been done, and nothing else been written to?
  void expect_done() const;

 private:
  PackCase case_;
  std::vector<std::byte> tensors_before_;
  std::vector<std::byte> bucket_before_;
  DeviceMemory tensors_;
  DeviceMemory bucket_;
  std::vector<TensorRange> ranges_;
};

/// Skips its tests, and says why, where there is no device.
class PackKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_device(); !why.empty()) GTEST_SKIP() << why;
  }

  static void launch(Packer& packer, const PackRequest& request, cudaStream_t stream = nullptr) {
    ASSERT_EQ(kernels::device::invalid_request(request), "");
    ASSERT_EQ(packer.launch(kernels::device::pack_plan(request), stream), cudaSuccess);
  }
};

}  // namespace elastic::gpu
