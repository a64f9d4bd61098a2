#include "coordinator/bucket_builder.hpp"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::coordinator {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<const TensorRequest> floats(std::string name, std::uint64_t count,
                                            ReduceOp op = ReduceOp::kSum) {
  return std::make_shared<const TensorRequest>(
      TensorRequest{std::move(name), kAllreduceRequest, op, {{DType::kF32, count}}});
}

std::vector<std::string> names(const BucketContent& content) {
  std::vector<std::string> result;
  for (const auto& request : content) result.push_back(request->name);
  return result;
}

TEST(BucketBuilder, ClosesABucketWhenTheNextRequestWouldExceedTheThreshold) {
  BucketBuilder builder(40);
  EXPECT_FALSE(builder.add(floats("a", 4)));
  EXPECT_FALSE(builder.add(floats("b", 6)));  // exactly full
  EXPECT_FALSE(builder.add(floats("empty", 0)));
  const auto closed = builder.add(floats("c", 1));
  ASSERT_TRUE(closed);
  EXPECT_THAT(names(*closed), ElementsAre("a", "b", "empty"));
  const auto rest = builder.close_all();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_THAT(names(rest[0]), ElementsAre("c"));
  EXPECT_TRUE(builder.close_all().empty());
}

TEST(BucketBuilder, GivesALargerRequestABucketOfItsOwn) {
  BucketBuilder builder(40);
  EXPECT_FALSE(builder.add(floats("small", 1)));
  const auto before = builder.add(floats("large", 11));
  ASSERT_TRUE(before);
  EXPECT_THAT(names(*before), ElementsAre("small"));
  const auto large = builder.add(floats("next", 1));
  ASSERT_TRUE(large);
  EXPECT_THAT(names(*large), ElementsAre("large"));
}

TEST(BucketBuilder, PutsEveryRequestAloneWithoutAThreshold) {
  BucketBuilder builder(0);
  EXPECT_FALSE(builder.add(floats("a", 1)));
  EXPECT_TRUE(builder.add(floats("b", 1)));
  EXPECT_TRUE(builder.add(floats("c", 1)));
}

TEST(BucketBuilder, MakesLargerBucketsOfTensorsOnDevices) {
  const auto on_device = [](const char* name, std::uint64_t count) {
    TensorRequest request = *floats(name, count);
    request.on_device = true;
    return std::make_shared<const TensorRequest>(std::move(request));
  };
  BucketBuilder builder(40);
  EXPECT_FALSE(builder.add(on_device("a", 10)));
  EXPECT_FALSE(builder.add(floats("host", 10)));
  EXPECT_FALSE(builder.add(on_device("b", 30)));  // exactly full
  const auto closed = builder.add(on_device("c", 1));
  ASSERT_TRUE(closed);
  EXPECT_THAT(names(*closed), ElementsAre("a", "b"));
  const auto host = builder.add(floats("more", 1));
  ASSERT_TRUE(host);
  EXPECT_THAT(names(*host), ElementsAre("host"));
}

TEST(BucketBuilder, KeepsOpsApartAndDtypesTogether) {
  BucketBuilder builder(1000);
  EXPECT_FALSE(builder.add(floats("sum1", 1)));
  EXPECT_FALSE(builder.add(floats("max", 1, ReduceOp::kMax)));
  EXPECT_FALSE(builder.add(std::make_shared<const TensorRequest>(
      TensorRequest{"sum2", kAllreduceRequest, ReduceOp::kSum, {{DType::kF64, 3}}})));
  const auto closed = builder.close_all();
  ASSERT_EQ(closed.size(), 2u);
  EXPECT_THAT(names(closed[0]), ElementsAre("sum1", "sum2"));
  EXPECT_THAT(names(closed[1]), ElementsAre("max"));
}

TEST(BucketBuilder, KeepsScalesApart) {
  BucketBuilder builder(1000);
  EXPECT_FALSE(builder.add(floats("plain", 1)));
  for (const char* name : {"scaled1", "scaled2"}) {
    EXPECT_FALSE(builder.add(std::make_shared<const TensorRequest>(TensorRequest{
        name, kAllreduceRequest, ReduceOp::kSum, {{DType::kF32, 3}}, Scale(0.5, 1)})));
  }
  const auto closed = builder.close_all();
  ASSERT_EQ(closed.size(), 2u);
  EXPECT_THAT(names(closed[0]), ElementsAre("plain"));
  EXPECT_THAT(names(closed[1]), ElementsAre("scaled1", "scaled2"));
}

TEST(BucketBuilder, NeverSplitsAGroup) {
  BucketBuilder builder(40);
  EXPECT_FALSE(builder.add(floats("a", 5)));
  const auto closed = builder.add(std::make_shared<const TensorRequest>(TensorRequest{
      "group", kAllreduceRequest, ReduceOp::kSum, {{DType::kF32, 5}, {DType::kF32, 5}}}));
  ASSERT_TRUE(closed);
  EXPECT_THAT(names(*closed), ElementsAre("a"));
  EXPECT_THAT(names(builder.close_all().at(0)), ElementsAre("group"));
}

TEST(BucketBuilder, BoundsWhatABucketTakesToDescribe) {
  BucketBuilder builder(std::size_t{1} << 40);
  bool closed = false;
  for (int i = 0; i < 100 && !closed; ++i) {
    std::string name(kMaxNameBytes, 'x');
    closed = builder.add(floats(name + std::to_string(i), 1)).has_value();
  }
  EXPECT_TRUE(closed);
}

TEST(BucketBuilder, RemovesARequest) {
  BucketBuilder builder(40);
  const auto a = floats("a", 5);
  const auto b = floats("b", 5);
  EXPECT_FALSE(builder.add(a));
  EXPECT_FALSE(builder.add(b));
  EXPECT_TRUE(builder.remove(a));
  EXPECT_FALSE(builder.remove(a));
  EXPECT_FALSE(builder.add(floats("c", 5)));  // there is room again
  EXPECT_TRUE(builder.remove(b));
  EXPECT_THAT(names(builder.close_all().at(0)), ElementsAre("c"));
  EXPECT_TRUE(builder.empty());
}

TEST(TensorRequest, IsValidatedWithItsName) {
  EXPECT_EQ(validate({"", 0, ReduceOp::kSum, {{DType::kF32, 1}}}).code(), Code::kInvalidArgument);
  const Status no_tensors = validate({"conv1", 0, ReduceOp::kSum, {}});
  EXPECT_EQ(no_tensors.code(), Code::kInvalidArgument);
  EXPECT_THAT(no_tensors.message(), ::testing::HasSubstr("conv1"));
  EXPECT_TRUE(validate({"conv1", 0, ReduceOp::kSum, {{DType::kF32, 0}}}).ok());
}

TEST(TensorRequest, IsDescribed) {
  EXPECT_EQ(describe(*floats("x", 10)), "allreduce of 10 f32, sum");
  EXPECT_EQ(describe(TensorRequest{"x", 0, ReduceOp::kMax, {{DType::kF32, 1}, {DType::kI64, 2}}}),
            "allreduce of a group of 2 tensors (1 f32, 2 i64), max");
  EXPECT_EQ(describe(TensorRequest{"x", 0, ReduceOp::kSum, {{DType::kF16, 9}}, Scale(0.125, 1)}),
            "allreduce of 9 f16, sum, times 0.125 before and 1 after");
}

}  // namespace
}  // namespace elastic::coordinator
