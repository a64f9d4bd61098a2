// A GradientCompressor of tensors that lie on a device, or are said to.
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

/// Nothing of them is on a device: they are refused, or sent as they are.
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

TEST_F(OnADevice, TensorsGoAsTheyAreWithoutCompression) {
  const auto none = compressor("none");
  none->grouped_allreduce(std::vector<NamedTensor>{{"a", floats_}, {"b", doubles_}},
                          ReduceOp::kAverage, {&place_});
  ASSERT_EQ(given_.size(), 2U);
  EXPECT_EQ(given_[0].wire_dtype, DType::kF32);
  EXPECT_EQ(given_[1].wire_dtype, DType::kF64);
  EXPECT_EQ(op_, ReduceOp::kAverage);
  EXPECT_EQ(stream_, &place_);
  EXPECT_EQ(
      none->latest(),
      (GradientCompressor::Traffic{
          .tensors = 480, .encoded = 480, .sent = 720, .sent_uncompressed = 720, .non_finite = 0}));
  EXPECT_TRUE(none->residual("a").empty());
}

TEST_F(OnADevice, WhatTakesHostMemoryIsRefused) {
  EXPECT_THAT(refusal("two_bit", {{"a", floats_}}),
              ::testing::AllOf(HasSubstr("'a' lies on a CUDA device"), HasSubstr("two_bit"),
                               HasSubstr("copy the tensors to host memory")));
  for (const char* const name : {"int8", "top_k"}) {
    EXPECT_THAT(refusal(name, {{"a", floats_}, {"b", doubles_}}),
                ::testing::AllOf(HasSubstr("'b' is of f64"), HasSubstr("take f16 or bf16")));
  }
  Tensor host(3);
  EXPECT_THAT(refusal("f16", {{"a", floats_}, {"b", view(std::span(host))}}),
              HasSubstr("tensor 'b' in host memory"));
  const TensorView whole_numbers{&place_, 5, DType::kI32, {Device::Kind::kCuda, 0}};
  EXPECT_THAT(refusal("f16", {{"a", whole_numbers}}), HasSubstr("not of floats"));
}

}  // namespace
}  // namespace elastic::testing
