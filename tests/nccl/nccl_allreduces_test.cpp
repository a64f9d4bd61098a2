// Allreduces of tensors on a device by the backend nccl, without faults.
#include <cstdint>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/backend/nccl/collectives/nccl_types.hpp"
#include "collectives/backend/nccl/memory/bucket_result.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "nccl/nccl_allreduce_fixture.hpp"

namespace elastic::collectives::nccl {
namespace {

using ::testing::HasSubstr;

class NcclAllreducesTest : public NcclAllreduceFixture {};

TEST_F(NcclAllreducesTest, ReducesEveryTypeByEveryOperation) {
  make(3, /*waits=*/true);
  for (const DType dtype : kDTypes) {
    for (const ReduceOp op : kOps) {
      if (!refusal(op, dtype).empty()) continue;
      SCOPED_TRACE(static_cast<int>(op));
      EXPECT_EQ(allreduce({{dtype, 1003}}, op), can_reduce(dtype) && can_reduce(op))
          << "by NCCL, or not";
    }
  }
  EXPECT_EQ(nccl_->counts().inits, 3);
}

TEST_F(NcclAllreducesTest, GoesThroughTheHostWhereATensorOfAGroupHasNoTypeOfNccl) {
  make(2, true);
  EXPECT_TRUE(allreduce());
  EXPECT_FALSE(allreduce({{DType::kF32, 1003}, {DType::kU16, 7}}));
  EXPECT_TRUE(allreduce()) << "it is good for the next";
}

TEST_F(NcclAllreducesTest, ReducesManyTensorsAtOnce) {
  make(2, true);
  const Shapes shapes{{DType::kF32, 1},      {DType::kF32, 100000}, {DType::kF16, 7},
                      {DType::kF64, 33},     {DType::kF64, 1},      {DType::kI8, 5},
                      {DType::kBF16, 70000}, {DType::kI64, 12}};
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMax}) {
    EXPECT_TRUE(allreduce(shapes, op));
  }
  // One for each run of a type, all of a call together.
  EXPECT_EQ(nccl_->counts().allreduces, 2 * 3 * 6);
  EXPECT_EQ(nccl_->counts().groups, 2 * 3);
}

/// The bytes of `with_casts()` in its wire dtypes.
constexpr std::size_t kCastBytes = (100003 + 33 + 70000 + 3) * 2 + 5 * 4;

TEST_F(NcclAllreducesTest, CastsTensorsThatTravelAsHalves) {
  make(3, true);
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
    EXPECT_TRUE(allreduce(with_casts(), op));
    EXPECT_TRUE(allreduce({{DType::kF32, 1003, {DType::kBF16, 1}}}, op)) << "by itself";
  }
  // A little more is sent, because of the padding between tensors.
  EXPECT_THAT(nccl_->counts().bytes,
              ::testing::AllOf(::testing::Ge(2 * 3 * (kCastBytes + 2006)),
                               ::testing::Le(2 * 3 * (kCastBytes + 2006 + 4 * 64))));
}

TEST_F(NcclAllreducesTest, ServesOneRankAlone) {
  make(1, true);
  EXPECT_TRUE(allreduce());
  EXPECT_TRUE(allreduce({{DType::kI32, 9}, {DType::kF32, 9}}, ReduceOp::kAverage));
}

TEST_F(NcclAllreducesTest, ComparesWhatRanksCall) {
  make(2, true);
  const auto outcome = begin({{DType::kF32, 100}});
  outcome->tensors[1] = std::make_unique<GpuTensors>(gpu_, 1, Shapes{{DType::kF32, 101}});
  outcome->tensors[1]->give(outcome->payloads[1]);
  on_all_ranks([&](int rank) { run_on(rank, *outcome, ReduceOp::kSum); });
  ++position_;
  for (const Status& status : outcome->statuses) {
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_THAT(status.message(), HasSubstr("101"));
  }
  for (const auto& each : outcome->tensors) each->expect_untouched();
  EXPECT_TRUE(allreduce());
}

/// The end of a call of which rank 1 does not hear, as its view changes. Others know that it has
/// the result, and rank 0 has none to give.
TEST_F(NcclAllreducesTest, ARankHasItsOwnResult) {
  make(3, true);
  const auto outcome = run(
      {{DType::kF32, 777}, {DType::kI32, 8}, {DType::kF64, 9, {DType::kF16, 4}}}, ReduceOp::kSum);
  ASSERT_TRUE(outcome->by_nccl());
  EXPECT_TRUE(outcome->payloads[0].stays_here());
  make(3, true, 8);
  Backend::HandoverPairs pairs;
  pairs.senders = {0};
  pairs.takers = {1};
  Backend::Parcel taken;
  on_all_ranks([&](int rank) {
    Backend::Parcel given;
    if (rank == 0) given.payload.swap(outcome->payloads[0]);
    expect_ok(backend(rank).hand_over(position_ - 1, pairs, rank == 1 ? taken : given));
  });
  EXPECT_TRUE(taken.payload.data.bytes().empty());
  expect_ok(outcome->tensors[1]->take(outcome->payloads[1], ReduceOp::kSum, 3));
  outcome->tensors[1]->expect(ReduceOp::kSum, 3);
}

}  // namespace
}  // namespace elastic::collectives::nccl
