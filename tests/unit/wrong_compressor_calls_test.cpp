// Calls of a GradientCompressor that are refused.
#include <cstdint>
#include <functional>
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

class WrongCompressorCalls : public ::testing::Test {
 protected:
  void expect(const std::string& words, const std::function<void()>& call) {
    try {
      call();
      FAIL() << "no error; expected " << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  }

  Tensor values_{1, 2, 3};
  CompressingWorld world_{1, {.kind = CompressionKind::kInt8}};
  GradientCompressor& compressor_ = world_.rank(0);
};

TEST_F(WrongCompressorCalls, AreRefusedWithTheReason) {
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
    expect("the op is neither kSum nor kAverage",
           [&] { compressor_.allreduce("w", std::span(values_), op); });
  }
  const std::string conflict = "BatchPolicy::kReproducible needs sums of whole numbers";
  std::vector<std::int64_t> whole_numbers{1};
  expect(conflict, [&] { compressor_.allreduce("w", view(std::span(whole_numbers))); });
  expect(conflict, [&] { compressor_.allreduce("w", std::span(values_), ReduceOp::kMax); });
  const TensorView words{values_.data(), 3, DType::kU32};
  expect("tensor 'w' is of u32, not of floats (f32)", [&] { compressor_.allreduce("w", words); });
  expect("has no name", [&] { compressor_.allreduce("", std::span(values_)); });
  expect("tensor 'w' is at a null pointer", [&] {
    compressor_.allreduce("w", TensorView{nullptr, 3});
  });
  expect("nothing that allreduces them", [&] {
    compressor_.allreduce("w", TensorView{values_.data(), 3, DType::kF32, {Device::Kind::kCuda}});
  });
  const NamedTensor twice{"w", view(std::span(values_))};
  expect("two tensors are called 'w'", [&] {
    compressor_.grouped_allreduce(std::vector{twice, twice});
  });
  EXPECT_EQ(values_, (Tensor{1, 2, 3}));
}

TEST_F(WrongCompressorCalls, ATensorKeepsItsSize) {
  for (const CompressionKind kind :
       {CompressionKind::kInt8, CompressionKind::kNone, CompressionKind::kF16}) {
    CompressingWorld world(1, {.kind = kind});
    GradientCompressor& compressor = world.rank(0);
    world.allreduce({values_});
    Tensor longer(4);
    expect("tensor 'tensor 0' has 4 elements, and had 3 before",
           [&] { compressor.allreduce("tensor 0", std::span(longer)); });
    compressor.reset();
    world.allreduce({longer});
  }
}

TEST_F(WrongCompressorCalls, ParametersOutOfRangeAreRefused) {
  expect("compression: ratio is 0; give a share above 0 and at most 1",
         [] { CompressingWorld(1, {.kind = CompressionKind::kTopK, .ratio = 0}); });
}

/// Every rank finds the same error, and nothing changes.
TEST(GradientCompressor, OtherTensorsOnOtherRanksAreAMismatch) {
  Tensor a{1, 2};
  Gathered<std::uint8_t> gathered;
  const auto noted = [&](std::span<const std::uint8_t> block) -> Gathered<std::uint8_t> {
    gathered.values.insert(gathered.values.end(), block.begin(), block.end());
    gathered.counts.push_back(block.size());
    return gathered;
  };
  GradientCompressor first({{}, noted}, {.kind = CompressionKind::kInt8});
  GradientCompressor second({{}, noted}, {.kind = CompressionKind::kInt8});
  gathered.contributors = {std::make_shared<const std::vector<WorkerId>>(2), 1};
  first.allreduce("a", std::span(a));
  const Tensor before = a;
  try {
    second.allreduce("b", std::span(a));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_EQ(error.peer(), 1);
    EXPECT_THAT(error.what(), HasSubstr("rank 1 gave tensors of other names"));
  }
  EXPECT_EQ(a, before);
  EXPECT_THAT(second.residual("b"), ::testing::Each(0.0F));
}

}  // namespace
}  // namespace elastic::testing
