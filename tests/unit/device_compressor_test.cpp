// A GradientCompressor of tensors that lie on a device.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/gradient_compressor.hpp"
#include "unit/compressing_world.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

/// Nothing of them is on the host: it only says how they are to travel.
class OnADevice : public ::testing::Test {
 protected:
  std::unique_ptr<GradientCompressor> compressor(const char* name) {
    return std::make_unique<GradientCompressor>(
        GradientCompressor::Collectives{
            {},
            {},
            [this](std::span<const CastTensor> tensors, ReduceOp op, CudaStream stream) {
              given_.assign(tensors.begin(), tensors.end());
              op_ = op;
              stream_ = stream.handle;
              return Contributors{std::make_shared<const std::vector<WorkerId>>(4), 1};
            }},
        find_compression(name).value());
  }
  std::string refusal(const char* name, const std::vector<NamedTensor>& tensors) {
    try {
      compressor(name)->grouped_allreduce(tensors);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "no error";
  }

  int place_ = 0;  // stands for memory of a device
  const TensorView floats_{&place_, 100, DType::kF32, {Device::Kind::kCuda, 1}};
  const TensorView doubles_{&place_, 10, DType::kF64, {Device::Kind::kCuda, 1}};
  std::vector<CastTensor> given_;
  ReduceOp op_ = ReduceOp::kSum;
  const void* stream_ = nullptr;
};

TEST_F(OnADevice, TensorsAreCastUnlessWhole) {
  const auto halves = compressor("f16:8");
  halves->grouped_allreduce(
      std::vector<NamedTensor>{{"a", floats_}, {"b", doubles_}, {"c", doubles_, true}},
      ReduceOp::kAverage, {&place_});
  ASSERT_EQ(given_.size(), 3U);
  EXPECT_EQ(given_[0].wire_dtype, DType::kF16);
  EXPECT_EQ(given_[0].scale, 8);
  EXPECT_EQ(given_[1].wire_dtype, DType::kF16);
  EXPECT_EQ(given_[2].wire_dtype, DType::kF64);
  EXPECT_EQ(given_[2].scale, 1);
  EXPECT_EQ(op_, ReduceOp::kAverage);
  EXPECT_EQ(stream_, &place_);
  EXPECT_EQ(
      halves->latest(),
      (GradientCompressor::Traffic{
          .tensors = 560, .encoded = 300, .sent = 450, .sent_uncompressed = 840, .non_finite = 0}));
  EXPECT_TRUE(halves->residual("a").empty());
  compressor("bf16")->allreduce("a", floats_);
  EXPECT_EQ(given_[0].wire_dtype, DType::kBF16);
  compressor("none")->allreduce("a", floats_);
  EXPECT_EQ(given_[0].wire_dtype, DType::kF32);
}

TEST_F(OnADevice, WhatTakesHostMemoryIsRefused) {
  for (const char* const name : {"int8", "two_bit", "top_k"}) {
    EXPECT_THAT(refusal(name, {{"a", floats_}}),
                ::testing::AllOf(HasSubstr("'a' lies on a CUDA device"), HasSubstr("f16 and bf16"),
                                 HasSubstr("copy the tensors to host memory")));
  }
  Tensor host(3);
  EXPECT_THAT(refusal("f16", {{"a", floats_}, {"b", view(std::span(host))}}),
              HasSubstr("tensor 'b' in host memory"));
  const TensorView whole_numbers{&place_, 5, DType::kI32, {Device::Kind::kCuda, 0}};
  EXPECT_THAT(refusal("f16", {{"a", whole_numbers}}), HasSubstr("not of floats"));
}

}  // namespace
}  // namespace elastic::testing
