// Broadcasts, allgathers and reduce_scatters of tensors on a device by the backend nccl, on
// stand-ins for NCCL and for the CUDA driver.
#include <atomic>

#include <gtest/gtest.h>

#include "collectives/backend/nccl/collectives/nccl_types.hpp"
#include "nccl/nccl_moves_fixture.hpp"

namespace elastic::collectives::nccl {
namespace {

using How = NcclScript::Allreduce;

class NcclMovesTest : public NcclMovesFixture {};

TEST_F(NcclMovesTest, BroadcastsEveryTypeFromEveryRank) {
  make(3, /*waits=*/true);
  for (const DType dtype : kDTypes) {
    for (int root = 0; root < 3; ++root) {
      Move move = broadcast(1003, root);
      move.dtype = dtype;
      EXPECT_TRUE(perform(move)) << "not by NCCL";
    }
  }
  EXPECT_EQ(nccl_->counts().broadcasts, static_cast<int>(kDTypes.size()) * 3 * 3);
}

TEST_F(NcclMovesTest, GathersEveryType) {
  make(3, true);
  for (const DType dtype : kDTypes) {
    Move move = allgather(alike(1003));
    move.dtype = dtype;
    EXPECT_TRUE(perform(move)) << "not by NCCL";
  }
  EXPECT_EQ(nccl_->counts().allgathers, static_cast<int>(kDTypes.size()) * 3);
  EXPECT_EQ(nccl_->counts().broadcasts, 0);
}

TEST_F(NcclMovesTest, GathersBlocksOfDifferentSizes) {
  make(3, true);
  EXPECT_TRUE(perform(allgather({5, 70001, 17})));
  EXPECT_EQ(nccl_->counts().broadcasts, 3 * 3);
  EXPECT_TRUE(perform(allgather({0, 0, 9})));
  EXPECT_EQ(nccl_->counts().groups, 2 * 3) << "one call of each rank to wait for";
  EXPECT_EQ(nccl_->counts().broadcasts, 4 * 3);
  EXPECT_EQ(nccl_->counts().allgathers, 0);
}

TEST_F(NcclMovesTest, ScattersEveryTypeByEveryOperation) {
  make(3, true);
  int by_nccl = 0;
  for (const DType dtype : kDTypes) {
    for (const ReduceOp op : kOps) {
      if (!refusal(op, dtype).empty()) continue;
      SCOPED_TRACE(static_cast<int>(op));
      for (const std::size_t count : {999UL, 1003UL}) {
        Move move = reduce_scatter(count, op);
        move.dtype = dtype;
        const bool can = can_reduce(dtype) && can_reduce(op);
        EXPECT_EQ(perform(move), can) << "by NCCL, or not";
        by_nccl += can ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(nccl_->counts().reduce_scatters, by_nccl * 3);
}

TEST_F(NcclMovesTest, ScattersLessThanThereAreRanks) {
  make(4, true);
  for (const std::size_t count : {1UL, 2UL, 3UL, 5UL}) {
    EXPECT_TRUE(perform(reduce_scatter(count, ReduceOp::kAverage)));
  }
}

TEST_F(NcclMovesTest, ServesOneRankAlone) {
  make(1, true);
  EXPECT_TRUE(perform(broadcast(100, 0)));
  EXPECT_TRUE(perform(allgather({100})));
  EXPECT_TRUE(perform(reduce_scatter(100, ReduceOp::kAverage)));
}

TEST_F(NcclMovesTest, ComparesWhatRanksCall) {
  make(3, true);
  const auto outcome = begin(broadcast(100, 0));
  outcome->tensors[2] = std::make_unique<GpuMove>(gpu_, 2, broadcast(100, 2));
  outcome->tensors[2]->give(outcome->payloads[2]);
  run(*outcome);
  for (const Status& status : outcome->statuses) EXPECT_EQ(status.code(), Code::kMismatch);
  for (const auto& each : outcome->tensors) each->expect_untouched();
  EXPECT_TRUE(perform(broadcast(100, 2)));
}

class NcclMoveTest : public NcclMovesTest, public ::testing::WithParamInterface<Kind> {};

TEST_P(NcclMoveTest, GoesThroughTheHostUntilAllRanksAreReady) {
  make(3, /*waits=*/false);
  EXPECT_FALSE(perform(of(GetParam()))) << "there cannot be a communicator yet";
  while (!perform(of(GetParam())) && !HasFailure()) {
  }
  EXPECT_TRUE(perform(of(GetParam()))) << "it was ready before";
}

TEST_P(NcclMoveTest, GoesThroughTheHostWhereTensorsLieElsewhereOnOneRank) {
  make(3, true);
  ASSERT_TRUE(perform(of(GetParam())));
  const auto outcome = begin(of(GetParam()));
  outcome->tensors[2]->give(outcome->payloads[2], /*device=*/-1);
  run(*outcome);
  EXPECT_FALSE(expect_right(*outcome));
  for (const auto& each : outcome->tensors) EXPECT_EQ(each->times_on_host(), 1);
  EXPECT_TRUE(perform(of(GetParam()))) << "it is good for the next";
}

TEST_P(NcclMoveTest, EndsInTheRightResultByWayOfTheHostWhereNcclFails) {
  std::uint64_t generation = 7;
  for (const How how : {How::kFailsAtOnce, How::kFailsLater}) {
    SCOPED_TRACE(static_cast<int>(how));
    nccl_->reset();
    nccl_->script(1, {.allreduce = how, .works_before = 1});
    make(3, true, generation++);
    EXPECT_TRUE(perform(of(GetParam())));
    EXPECT_FALSE(perform(of(GetParam())));
    EXPECT_EQ(nccl_->counts().aborts, 3) << "what it has of the devices";
    EXPECT_FALSE(perform(of(GetParam()))) << "NCCL is off in this view";
    nccl_->script(1, {});
    make(3, true, generation++);
    EXPECT_TRUE(perform(of(GetParam()))) << "and back in the next";
    end_view();
  }
}

TEST_P(NcclMoveTest, SeesAPeerDieInTheMiddle) {
  nccl_->script(2, {.allreduce = How::kHangs});
  make(3, true);
  const auto outcome = begin(of(GetParam()));
  const auto all_have_begun = [&] {
    const NcclCounts counts = nccl_->counts();
    return counts.broadcasts + counts.allgathers + counts.reduce_scatters == 3;
  };
  while_one_ends(2, all_have_begun, [&](int rank) { run_on(rank, *outcome); });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome->statuses[rank].code(), Code::kPeerLost);
    EXPECT_FALSE(outcome->payloads[rank].own_block_complete());
    outcome->tensors[rank]->expect_intact_input();
  }
  EXPECT_EQ(nccl_->counts().aborts, 3);
}

/// A rank dies after the others have their results, and before it has confirmed its own. The others
/// do not know whether it has confirmed to one of them.
TEST_P(NcclMoveTest, KeepsAResultThatOthersMayCountOn) {
  nccl_->script(2, {.allreduce = How::kHangsAtEnd, .works_before = 1});
  make(3, true);
  ASSERT_TRUE(perform(of(GetParam())));
  const auto outcome = begin(of(GetParam()));
  std::atomic<bool> others_are_done{false};
  nccl_->on_poll([&](int rank) {
    if (rank != 2) return;
    const auto mesh = meshes_[2].lock();
    // Each has said whether it is ready for the next operation, and that it has succeeded.
    if (mesh->link(0).received() == 2 && mesh->link(1).received() == 2) others_are_done = true;
  });
  while_one_ends(
      2, [&] { return others_are_done.load(); }, [&](int rank) { run_on(rank, *outcome); });
  EXPECT_EQ(outcome->statuses[2].code(), Code::kAborted);
  EXPECT_FALSE(outcome->payloads[2].own_block_complete());
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome->statuses[rank].code(), Code::kPeerLost);
    ASSERT_TRUE(outcome->payloads[rank].own_block_complete());
    outcome->tensors[rank]->expect_intact_input();
    expect_ok(outcome->tensors[rank]->take(outcome->payloads[rank]));
    outcome->tensors[rank]->expect_right(outcome->payloads[rank]);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, NcclMoveTest,
                         ::testing::Values(Kind::kBroadcast, Kind::kAllgather,
                                           Kind::kReduceScatter),
                         [](const auto& param) {
                           return param.param == Kind::kBroadcast   ? "Broadcast"
                                  : param.param == Kind::kAllgather ? "Allgather"
                                                                    : "ReduceScatter";
                         });

}  // namespace
}  // namespace elastic::collectives::nccl
