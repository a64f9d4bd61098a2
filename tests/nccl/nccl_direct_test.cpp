// Results that NCCL writes straight to the outputs, on stand-ins for NCCL and for the CUDA driver.
// The stand-in leaves garbage in the output of a collective that it does not end.
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/backend/nccl/memory/output_room.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "nccl/nccl_allreduce_fixture.hpp"
#include "nccl/nccl_moves_fixture.hpp"

namespace elastic::collectives::nccl {
namespace {

using How = NcclScript::Allreduce;

TEST(OutputRoom, IsForResultsThatFitAndDoNotOverlapTheInput) {
  DeviceTensor tensor{DType::kF32, 2, /*input=*/1000, /*output=*/1008};
  tensor.room = 16;
  EXPECT_TRUE(can_go_to_output(tensor, 16));
  EXPECT_FALSE(can_go_to_output(tensor, 17));
  tensor.output = 1007;
  EXPECT_FALSE(can_go_to_output(tensor, 1)) << "in the input";
  EXPECT_TRUE(can_go_to_output(tensor, 0));
  tensor.output = 990;
  EXPECT_TRUE(can_go_to_output(tensor, 10)) << "before it; the rest of the room does not matter";
  EXPECT_FALSE(can_go_to_output(tensor, 11));
  tensor.output = tensor.input;
  EXPECT_FALSE(can_go_to_output(tensor, 8));
  tensor.count = 0;
  EXPECT_TRUE(can_go_to_output(tensor, 8)) << "there is no input";
}

class NcclDirectTest : public NcclMovesFixture {
 protected:
  /// Performs it by NCCL. Expects a result in the output of each rank before the ranks take theirs,
  /// or none.
  void perform_directly(const Move& move, bool direct) {
    const auto outcome = begin(move);
    run(*outcome);
    for (const auto& each : outcome->tensors) {
      EXPECT_EQ(each->has_written_output(), direct);
      each->expect_intact_input();
    }
    EXPECT_TRUE(expect_right(*outcome)) << "not by NCCL";
  }
  /// The copies on the device that this takes.
  long copies_in(const Move& move) {
    const long before = copies_on_device();
    perform_directly(move, true);
    return copies_on_device() - before;
  }
};

TEST_F(NcclDirectTest, GathersToTheOutput) {
  make(3, /*waits=*/true);
  for (const auto& counts : std::vector<std::vector<std::size_t>>{
           {1003, 1003, 1003}, {5, 70001, 17}, {0, 0, 9}, {70000, 0, 1}}) {
    EXPECT_EQ(copies_in(allgather(counts)), 0);
  }
}

TEST_F(NcclDirectTest, ScattersToTheOutput) {
  make(3, true);
  EXPECT_EQ(copies_in(reduce_scatter(3000)), 0);
  EXPECT_EQ(copies_in(reduce_scatter(3000, ReduceOp::kMax)), 0);
  EXPECT_EQ(copies_in(reduce_scatter(3000, ReduceOp::kAverage)), 0) << "it is divided in place";
  EXPECT_EQ(copies_in(reduce_scatter(3001)), 3 * (3 + 1)) << "to the slots, and from one of them";
  EXPECT_EQ(copies_in(reduce_scatter(3001, ReduceOp::kAverage)), 3 * (3 + 1));
}

/// A broadcast may be performed again from this rank's tensor.
TEST_F(NcclDirectTest, BroadcastsToABucket) {
  make(3, true);
  perform_directly(broadcast(3000, 1), false);
}

/// Nothing is written, as the call ends in an error on such a rank.
TEST_F(NcclDirectTest, LeavesOutputsThatAreTooSmall) {
  make(3, true);
  for (Move move : {allgather({5, 70001, 17}), allgather(alike(1003)), reduce_scatter(3000),
                    reduce_scatter(3001), reduce_scatter(3001, ReduceOp::kAverage)}) {
    move.place = Place::kTooSmall;
    const auto outcome = begin(move);
    run(*outcome);
    EXPECT_TRUE(outcome->by_nccl());
    for (std::size_t rank = 0; rank < 3; ++rank) {
      expect_ok(outcome->statuses[rank]);
      outcome->tensors[rank]->expect_untouched();
    }
  }
}

class NcclOverlapTest : public NcclDirectTest, public ::testing::WithParamInterface<Place> {
 protected:
  std::vector<Move> moves() const {
    std::vector<Move> all{allgather(alike(1003)), allgather({5, 70001, 17}), reduce_scatter(3000),
                          reduce_scatter(3001, ReduceOp::kAverage)};
    for (Move& move : all) move.place = GetParam();
    return all;
  }
  /// One of `moves`, between three ranks.
  static bool all_have_begun(const NcclCounts& before, const NcclCounts& now) {
    return now.allgathers == before.allgathers + 3 || now.broadcasts == before.broadcasts + 3 * 3 ||
           now.reduce_scatters == before.reduce_scatters + 3;
  }
};

TEST_P(NcclOverlapTest, HasRightResults) {
  make(3, true);
  for (const Move& move : moves()) perform_directly(move, GetParam() == Place::kOutOfPlace);
}

/// NCCL is ended by a change of the view, and the next attempt, by NCCL or through host memory, has
/// the same inputs.
TEST_P(NcclOverlapTest, FailsWithIntactInputs) {
  make(3, true);
  std::uint64_t generation = 8;
  for (const Move& move : moves()) {
    for (const bool again_by_nccl : {true, false}) {
      nccl_->script(1, {.allreduce = How::kHangs});
      make(3, true, generation++);
      const auto outcome = begin(move);
      const NcclCounts before = nccl_->counts();
      std::thread aborter([&] {
        until([&] { return all_have_begun(before, nccl_->counts()); });
        for (auto& each : backends_) each->abort();
      });
      run(*outcome);
      aborter.join();
      for (std::size_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(outcome->statuses[rank].code(), Code::kAborted);
        outcome->tensors[rank]->expect_intact_input();
        outcome->tensors[rank]->give(outcome->payloads[rank], again_by_nccl ? 0 : -1);
      }
      nccl_->script(1, {});
      make(3, true, generation++);
      run(*outcome);
      EXPECT_EQ(expect_right(*outcome), again_by_nccl);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Places, NcclOverlapTest,
                         ::testing::Values(Place::kOutOfPlace, Place::kInPlace, Place::kOverlaps),
                         [](const auto& param) {
                           return param.param == Place::kOutOfPlace ? "OutOfPlace"
                                  : param.param == Place::kInPlace  ? "InPlace"
                                                                    : "Overlaps";
                         });

/// Tensors are out of place on even ranks.
class NcclDirectAllreduceTest : public NcclAllreduceFixture {
 protected:
  void make_without_registration(int size, std::uint64_t generation = 7) {
    make(size, true, generation, [&](NcclServices& its) {
      if (generation == 7) its.devices = std::make_shared<SharedDevices>(CUDA_STAND_IN);
    });
  }
  /// Whether each rank has something in its output, before it has taken its result. The result is
  /// right then.
  std::vector<bool> written_directly(const Shapes& shapes, ReduceOp op) {
    const auto outcome = run(shapes, op);
    std::vector<bool> written;
    for (const auto& each : outcome->tensors) written.push_back(each->has_written_output());
    EXPECT_TRUE(expect_right(*outcome, op)) << "not by NCCL";
    return written;
  }
};

TEST_F(NcclDirectAllreduceTest, ReducesASingleTensorToItsOutput) {
  make_without_registration(3);
  const std::vector<bool> on_even_ranks{true, false, true};
  const std::vector<bool> on_none{false, false, false};
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kAverage}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kI32}) {
      EXPECT_EQ(written_directly({{dtype, 70001}}, op), on_even_ranks);
    }
  }
  EXPECT_EQ(written_directly({{DType::kF32, 100}, {DType::kF32, 5}}, ReduceOp::kSum), on_none);
  const long before = copies_on_device();
  EXPECT_EQ(written_directly({{DType::kF32, 100}}, ReduceOp::kSum), on_even_ranks);
  EXPECT_EQ(copies_on_device() - before, 1) << "from the bucket of rank 1";
}

TEST_F(NcclDirectAllreduceTest, CastsToABucket) {
  make(3, true);
  const Shapes cast{{DType::kF32, 1003, {DType::kBF16}}};
  EXPECT_EQ(written_directly(cast, ReduceOp::kSum), std::vector<bool>(3, false));
}

/// NCCL uses that only if all ranks do.
TEST_F(NcclDirectAllreduceTest, ReducesToRegisteredMemoryWhereThereIsSome) {
  make(3, true);
  EXPECT_EQ(written_directly({{DType::kF32, 1003}}, ReduceOp::kSum), std::vector<bool>(3, false));
  EXPECT_EQ(nccl_->counts().in_registered, 3);
}

TEST_F(NcclDirectAllreduceTest, FailsWithIntactInputs) {
  std::uint64_t generation = 7;
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
    nccl_->script(1, {.allreduce = How::kHangs});
    make_without_registration(3, generation++);
    const auto outcome = begin({{DType::kF32, 3000}});
    const int launched = nccl_->counts().allreduces;
    std::thread aborter([&] {
      until([&] { return nccl_->counts().allreduces == launched + 3; });
      for (auto& each : backends_) each->abort();
    });
    on_all_ranks([&](int rank) { run_on(rank, *outcome, op); });
    ++position_;
    aborter.join();
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(outcome->statuses[rank].code(), Code::kAborted);
      outcome->tensors[rank]->expect_untouched();
      EXPECT_EQ(outcome->tensors[rank]->has_written_output(), rank % 2 == 0);
      outcome->tensors[rank]->give(outcome->payloads[rank]);
    }
    nccl_->script(1, {});
    make_without_registration(3, generation++);
    on_all_ranks([&](int rank) { run_on(rank, *outcome, op); });
    ++position_;
    EXPECT_TRUE(expect_right(*outcome, op));
  }
}

}  // namespace
}  // namespace elastic::collectives::nccl
