// Allreduces of tensors on a device that the backend nccl takes through host memory, though nothing
// has failed in them.
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/backend/nccl/memory/bucket_mover.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "nccl/nccl_allreduce_fixture.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives::nccl {
namespace {

using std::chrono::milliseconds;
using Script = NcclScript;

class NcclByHostTest : public NcclAllreduceFixture {
 protected:
  /// Whether a lane of the rank has the turn on the device.
  bool is_taken(std::size_t rank) {
    return !services_[rank].devices->open(0).value()->take_turn({});
  }
};

TEST_F(NcclByHostTest, GoesThroughTheHostUntilAllRanksAreReady) {
  make(3, /*waits=*/false);
  EXPECT_FALSE(allreduce()) << "there cannot be a communicator yet";
  int calls = 1;
  while (!allreduce() && !HasFailure()) ++calls;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(allreduce()) << "it was ready before";
  EXPECT_EQ(nccl_->counts().inits, 3);
  EXPECT_EQ(nccl_->counts().ids, 1);
}

TEST_F(NcclByHostTest, StaysOnTheHostWhereOneRankNeverGetsReady) {
  nccl_->script(1, {.init = Script::Init::kNeverDone});
  make(3, false);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(allreduce());
  EXPECT_EQ(nccl_->counts().allreduces, 0);
}

TEST_F(NcclByHostTest, DoesNotWaitForWhatHasFailed) {
  nccl_->script(1, {.init = Script::Init::kFailsAtOnce, .failure = Script::kCudaError});
  make(2, /*waits=*/true, 7,
       [](NcclServices& its) { its.deadlines.start = milliseconds(1000) * kSlowness; });
  EXPECT_FALSE(allreduce());
  EXPECT_FALSE(allreduce());
  EXPECT_EQ(nccl_->counts().ids, 1) << "it was tried again in the same view";
}

TEST_F(NcclByHostTest, GoesThroughTheHostWhereTensorsLieElsewhereOnOneRank) {
  make(3, true);
  ASSERT_TRUE(allreduce());
  const auto outcome = begin({{DType::kF64, 500}});
  outcome->tensors[1]->give(outcome->payloads[1], /*device=*/-1);
  on_all_ranks([&](int rank) { run_on(rank, *outcome, ReduceOp::kAverage); });
  ++position_;
  EXPECT_FALSE(expect_right(*outcome, ReduceOp::kAverage));
  for (const auto& each : outcome->tensors) EXPECT_EQ(each->times_on_host(), 1);
  EXPECT_TRUE(allreduce()) << "it is good for the next";
}

/// Another lane of the rank has work on it, which may wait for other ranks.
TEST_F(NcclByHostTest, GoesThroughTheHostWhereADeviceStaysTaken) {
  make(2, true);
  ASSERT_TRUE(allreduce());
  {
    const auto device = services_[1].devices->open(0);
    const auto turn = device.value()->take_turn({});
    ASSERT_TRUE(turn);
    EXPECT_FALSE(allreduce());
  }
  EXPECT_TRUE(allreduce());
}

TEST_F(NcclByHostTest, WaitsForADeviceThatIsTaken) {
  make(2, true, 7, [](NcclServices& services) { services.turn = std::chrono::minutes(1); });
  ASSERT_TRUE(allreduce());
  const auto device = services_[1].devices->open(0);
  auto turn = device.value()->take_turn({});
  ASSERT_TRUE(turn);
  const auto outcome = begin({{DType::kF32, 1003}});
  std::thread ranks(
      [&] { on_all_ranks([&](int rank) { run_on(rank, *outcome, ReduceOp::kSum); }); });
  until([&] { return is_taken(0); });
  turn.give_back();
  ranks.join();
  EXPECT_TRUE(expect_right(*outcome, ReduceOp::kSum)) << "it went through the host";
}

/// The first lane has the device on one rank, and the second lane on the other: each waits for a
/// call that the other rank does not make while the device is taken.
TEST_F(NcclByHostTest, LanesThatWaitForEachOtherOnTwoRanksGoOn) {
  make(2, true);
  ASSERT_TRUE(allreduce());
  const auto of_lane_0 = begin({{DType::kF32, 500}});
  const auto of_lane_1 = begin({{DType::kF32, 700}});
  const auto run_lane_1 = [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    of_lane_1->statuses[at] = other_backend(rank).run(
        0, of_lane_1->tensors[at]->call(ReduceOp::kSum), of_lane_1->payloads[at]);
  };
  std::vector<std::thread> lanes;
  lanes.emplace_back([&] { run_on(0, *of_lane_0, ReduceOp::kSum); });
  lanes.emplace_back([&] { run_lane_1(1); });
  until([&] { return is_taken(0) && is_taken(1); });
  lanes.emplace_back([&] { run_on(1, *of_lane_0, ReduceOp::kSum); });
  lanes.emplace_back([&] { run_lane_1(0); });
  for (std::thread& each : lanes) each.join();
  expect_right(*of_lane_0, ReduceOp::kSum);
  expect_right(*of_lane_1, ReduceOp::kSum);
}

TEST_F(NcclByHostTest, GoesThroughTheHostWhereOneRankCannotCast) {
  make(3, true);
  services_[1].devices = std::make_shared<SharedDevices>(
      CUDA_STAND_IN, [](auto& device) { return std::make_unique<CopyMover>(device); });
  make(3, true, 8);
  EXPECT_FALSE(allreduce(with_casts(), ReduceOp::kAverage));
  EXPECT_TRUE(allreduce()) << "without casts it can";
  EXPECT_FALSE(allreduce(with_casts()));
  EXPECT_TRUE(allreduce());
}

}  // namespace
}  // namespace elastic::collectives::nccl
