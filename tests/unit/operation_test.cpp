#include "coordinator/operation.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/transport/frame.hpp"

namespace elastic::coordinator {
namespace {

using collectives::Payload;
using collectives::Wire;

Members two_members() {
  Members members;
  members.incarnations = {"a", "b"};
  return members;
}

struct Tensors {
  std::vector<float> rounded = std::vector<float>(5, 1 + 0x1p-12F);  // 1 as any half
  std::vector<float> whole = std::vector<float>(3, 1 + 0x1p-12F);
  std::vector<double> doubles = std::vector<double>(2, 3);

  std::vector<TensorView> views() {
    return {view(std::span(rounded)), view(std::span(whole)), view(std::span(doubles))};
  }
  std::unique_ptr<AllreduceOperation> operation(ReduceOp op, std::vector<Wire> wires) {
    const std::vector<TensorView> all = views();
    return std::make_unique<AllreduceOperation>(
        std::vector<ConstTensorView>(all.begin(), all.end()), all, op, std::move(wires));
  }
};

const std::vector<Wire> kWires{{DType::kF16, 4}, {DType::kF32}, {DType::kBF16}};

transport::Fingerprint print(ReduceOp op, std::vector<Wire> wires) {
  return Tensors().operation(op, std::move(wires))->call(two_members()).fingerprint;
}

TEST(CastAllreduce, TravelsAsHalves) {
  const Members members = two_members();
  Tensors tensors;
  const auto operation = tensors.operation(ReduceOp::kAverage, kWires);
  const auto sections = operation->call(members).sections;
  ASSERT_EQ(sections.size(), 3U);
  EXPECT_EQ(sections[0].dtype, DType::kF16);
  EXPECT_EQ(sections[1].dtype, DType::kF32);
  EXPECT_EQ(sections[2].dtype, DType::kBF16);
  Payload payload;
  operation->pack(members, payload);
  ASSERT_EQ(payload.data.size(), 2 * collectives::kSectionAlignment + 2 * 2);
  float16 first;
  std::memcpy(&first, payload.data.data(), sizeof first);
  EXPECT_EQ(static_cast<float>(first), 4.0F);

  std::ranges::fill(tensors.rounded, 0.0F);
  std::ranges::fill(tensors.whole, 0.0F);
  std::ranges::fill(tensors.doubles, 0.0);
  operation->unpack(members, payload);  // as if the other had added nothing
  EXPECT_EQ(tensors.rounded, std::vector<float>(5, 0.5F));
  EXPECT_EQ(tensors.whole, std::vector<float>(3, (1 + 0x1p-12F) / 2));
  EXPECT_EQ(tensors.doubles, std::vector<double>(2, 1.5));
}

TEST(CastAllreduce, IsNoOtherCall) {
  const auto with_casts = print(ReduceOp::kSum, kWires);
  EXPECT_NE(with_casts, print(ReduceOp::kSum, {}));
  EXPECT_NE(with_casts, print(ReduceOp::kAverage, kWires));
  EXPECT_NE(with_casts, print(ReduceOp::kSum, {{DType::kF16, 2}, {DType::kF32}, {DType::kBF16}}));
  EXPECT_NE(with_casts, print(ReduceOp::kSum, {{DType::kBF16}, {DType::kF32}, {DType::kBF16}}));
  EXPECT_EQ(with_casts, print(ReduceOp::kSum, kWires));
  EXPECT_EQ(print(ReduceOp::kSum, {}),
            print(ReduceOp::kSum, {{DType::kF32}, {DType::kF32}, {DType::kF64}}));
  EXPECT_NE(describe(with_casts).find("sum, cast"), std::string::npos);
}

/// A backend that works on the caller's tensor cannot cast it to a wire dtype on the way.
TEST(CastAllreduce, IsNotZeroCopy) {
  Tensors tensors;
  const auto operation = tensors.operation(ReduceOp::kSum, kWires);
  operation->choose_ways({.zero_copy_from = 1});
  Payload payload;
  operation->pack(two_members(), payload);
  ASSERT_EQ(payload.zero_copy().size(), 1U);
  EXPECT_EQ(payload.zero_copy()[0].count, 3U);
  const auto places = operation->places();
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(places[1].tensor, 2U);
  EXPECT_EQ(places[2].offset, 2 * collectives::kSectionAlignment);
}

/// One pass scales and copies; so the tensor cannot stay in place.
TEST(ScaledAllreduce, MultipliesOnTheWayInAndOut) {
  const std::vector<float> given{1, 2, 3};
  std::vector<float> result(3);
  const auto with = [&](ReduceOp op, Scale scale) {
    return AllreduceOperation({elastic::view(std::span(given))}, {elastic::view(std::span(result))},
                              op, {}, scale);
  };
  AllreduceOperation operation = with(ReduceOp::kAverage, Scale(4, 0.5));
  operation.choose_ways({.zero_copy_from = 1});
  Payload payload;
  operation.pack(two_members(), payload);
  ASSERT_TRUE(payload.zero_copy().empty());
  std::array<float, 3> packed;
  std::memcpy(packed.data(), payload.data.data(), sizeof packed);
  EXPECT_THAT(packed, ::testing::ElementsAre(4, 8, 12));
  operation.unpack(two_members(), payload);  // as if the other had added nothing
  EXPECT_THAT(result, ::testing::ElementsAre(1, 2, 3));

  const auto print = [&](Scale scale) {
    return with(ReduceOp::kSum, scale).call(two_members()).fingerprint;
  };
  EXPECT_EQ(print(Scale(1, 1)), allreduce_fingerprint(DType::kF32, ReduceOp::kSum, 3));
  EXPECT_NE(print(Scale(2, 1)), print(Scale(1, 1)));
  EXPECT_NE(print(Scale(2, 1)), print(Scale(1, 2)));
  EXPECT_EQ(print(Scale(2, 1)), print(Scale(2, 1)));
}

/// Its tensors have weights of their own, so they cannot share a section; nor are they worked on in
/// place, or in an eager message.
TEST(AdasumAllreduce, HasASectionForEachTensor) {
  std::vector<float> one(10);
  std::vector<float> other(1000);
  const std::vector<TensorView> tensors{elastic::view(std::span(one)),
                                        elastic::view(std::span(other))};
  AllreduceOperation operation({tensors.begin(), tensors.end()}, tensors, ReduceOp::kAdasum);
  operation.choose_ways({.eager_below = 1 << 20, .zero_copy_from = 1});
  const auto sections = operation.call(two_members()).sections;
  ASSERT_EQ(sections.size(), 2U);
  EXPECT_EQ(sections[0].count, 10U);
  EXPECT_EQ(sections[1].offset, collectives::kSectionAlignment);
  EXPECT_EQ(sections[1].count, 1000U);
  Payload payload;
  operation.pack(two_members(), payload);
  EXPECT_TRUE(payload.zero_copy().empty());
}

/// The choice of zero-copy tensors depends on the view: each attempt makes it again from all
/// tensors.
TEST(AllreduceOperationTest, IsSplitAgainForEachView) {
  std::vector<std::int32_t> small(10);
  std::vector<std::int32_t> middle(100);
  std::vector<std::int32_t> large(1000);
  const std::vector<TensorView> tensors{elastic::view(std::span(middle)),
                                        elastic::view(std::span(small)),
                                        elastic::view(std::span(large))};
  AllreduceOperation operation({tensors.begin(), tensors.end()}, tensors, ReduceOp::kSum);
  const Members members;
  const auto split = [&](std::size_t zero_copy_from) {
    operation.choose_ways({.zero_copy_from = zero_copy_from});
    Payload payload;
    operation.pack(members, payload);
    std::vector<const void*> zero_copy;
    for (const auto& tensor : payload.zero_copy()) zero_copy.push_back(tensor.input);
    return std::pair(collectives::extent(operation.call(members).sections), zero_copy);
  };
  using Addresses = std::vector<const void*>;
  EXPECT_EQ(split(400), std::pair(std::size_t{40}, Addresses{middle.data(), large.data()}));
  EXPECT_EQ(split(4000), std::pair(std::size_t{440}, Addresses{large.data()}));
  EXPECT_EQ(split(plan::AllreduceLimits::kNever), std::pair(std::size_t{4440}, Addresses{}));
  EXPECT_EQ(split(400), std::pair(std::size_t{40}, Addresses{middle.data(), large.data()}));
}

}  // namespace
}  // namespace elastic::coordinator
