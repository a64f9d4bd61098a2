#include "coordinator/bucket_planner.hpp"

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

TEST(BucketPlanner, ClosesABucketWhenTheNextRequestWouldExceedTheThreshold) {
  BucketPlanner planner(40);
  EXPECT_FALSE(planner.add(floats("a", 4)));
  EXPECT_FALSE(planner.add(floats("b", 6)));  // exactly full
  EXPECT_FALSE(planner.add(floats("empty", 0)));
  const auto closed = planner.add(floats("c", 1));
  ASSERT_TRUE(closed);
  EXPECT_THAT(names(*closed), ElementsAre("a", "b", "empty"));
  const auto rest = planner.close_all();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_THAT(names(rest[0]), ElementsAre("c"));
  EXPECT_TRUE(planner.close_all().empty());
}

TEST(BucketPlanner, GivesALargerRequestABucketOfItsOwn) {
  BucketPlanner planner(40);
  EXPECT_FALSE(planner.add(floats("small", 1)));
  const auto before = planner.add(floats("large", 11));
  ASSERT_TRUE(before);
  EXPECT_THAT(names(*before), ElementsAre("small"));
  const auto large = planner.add(floats("next", 1));
  ASSERT_TRUE(large);
  EXPECT_THAT(names(*large), ElementsAre("large"));
}

TEST(BucketPlanner, PutsEveryRequestAloneWithoutAThreshold) {
  BucketPlanner planner(0);
  EXPECT_FALSE(planner.add(floats("a", 1)));
  EXPECT_TRUE(planner.add(floats("b", 1)));
  EXPECT_TRUE(planner.add(floats("c", 1)));
}

TEST(BucketPlanner, KeepsOpsApartAndDtypesTogether) {
  BucketPlanner planner(1000);
  EXPECT_FALSE(planner.add(floats("sum1", 1)));
  EXPECT_FALSE(planner.add(floats("max", 1, ReduceOp::kMax)));
  EXPECT_FALSE(planner.add(std::make_shared<const TensorRequest>(
      TensorRequest{"sum2", kAllreduceRequest, ReduceOp::kSum, {{DType::kF64, 3}}})));
  const auto closed = planner.close_all();
  ASSERT_EQ(closed.size(), 2u);
  EXPECT_THAT(names(closed[0]), ElementsAre("sum1", "sum2"));
  EXPECT_THAT(names(closed[1]), ElementsAre("max"));
}

TEST(BucketPlanner, NeverSplitsAGroup) {
  BucketPlanner planner(40);
  EXPECT_FALSE(planner.add(floats("a", 5)));
  const auto closed = planner.add(std::make_shared<const TensorRequest>(TensorRequest{
      "group", kAllreduceRequest, ReduceOp::kSum, {{DType::kF32, 5}, {DType::kF32, 5}}}));
  ASSERT_TRUE(closed);
  EXPECT_THAT(names(*closed), ElementsAre("a"));
  EXPECT_THAT(names(planner.close_all().at(0)), ElementsAre("group"));
}

TEST(BucketPlanner, BoundsWhatABucketTakesToDescribe) {
  BucketPlanner planner(std::size_t{1} << 40);
  bool closed = false;
  for (int i = 0; i < 100 && !closed; ++i) {
    std::string name(kMaxNameBytes, 'x');
    closed = planner.add(floats(name + std::to_string(i), 1)).has_value();
  }
  EXPECT_TRUE(closed);
}

TEST(BucketPlanner, RemovesARequest) {
  BucketPlanner planner(40);
  const auto a = floats("a", 5);
  const auto b = floats("b", 5);
  EXPECT_FALSE(planner.add(a));
  EXPECT_FALSE(planner.add(b));
  EXPECT_TRUE(planner.remove(a));
  EXPECT_FALSE(planner.remove(a));
  EXPECT_FALSE(planner.add(floats("c", 5)));  // there is room again
  EXPECT_TRUE(planner.remove(b));
  EXPECT_THAT(names(planner.close_all().at(0)), ElementsAre("c"));
  EXPECT_TRUE(planner.empty());
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
}

}  // namespace
}  // namespace elastic::coordinator
