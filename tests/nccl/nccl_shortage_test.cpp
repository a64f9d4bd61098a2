// Collectives by the backend nccl where the device of a rank has too little memory.
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/backend/nccl/memory/memory_shortage.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "nccl/gpu_move.hpp"
#include "nccl/nccl_allreduce_fixture.hpp"

namespace elastic::collectives::nccl {
namespace {

using ::testing::HasSubstr;

constexpr int kNone = -1;
constexpr std::size_t kMiB = std::size_t{1} << 20;

class NcclShortageTest : public NcclAllreduceFixture {
 protected:
  static void without_registration(NcclServices& services) {
    services.devices = std::make_shared<SharedDevices>(CUDA_STAND_IN);
  }

  /// An allreduce in which `lacking` gets no more device memory. Expects right results; whether it
  /// was NCCL's.
  bool allreduce_while(int lacking, const Shapes& shapes) {
    const auto outcome = begin(shapes);
    on_all_ranks([&](int rank) {
      if (rank == lacking) leave_memory(0);
      run_on(rank, *outcome, ReduceOp::kAverage);
    });
    ++position_;
    return expect_right(*outcome, ReduceOp::kAverage);
  }

  /// The same for other collectives.
  bool perform_while(int lacking, const Move& move) {
    const auto ranks = static_cast<std::size_t>(size_);
    std::vector<std::unique_ptr<GpuMove>> tensors;
    std::vector<Payload> payloads(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      tensors.push_back(std::make_unique<GpuMove>(gpu_, static_cast<int>(rank), move));
      tensors.back()->give(payloads[rank]);
    }
    on_all_ranks([&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      if (rank == lacking) leave_memory(0);
      expect_ok(backend(rank).run(position_, tensors[at]->call(), payloads[at]));
    });
    ++position_;
    const bool by_nccl = payloads.front().device_result() != nullptr;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(payloads[rank].device_result() != nullptr, by_nccl);
      expect_ok(tensors[rank]->take(payloads[rank]));
      tensors[rank]->expect_right(payloads[rank]);
    }
    return by_nccl;
  }

  void expect_same_communicator() {
    EXPECT_EQ(nccl_->counts().inits, size_);
    EXPECT_EQ(nccl_->counts().aborts, 0);
  }
};

TEST_F(NcclShortageTest, TakesOneAllreduceThroughTheHost) {
  make(3, true, 7, without_registration);
  EXPECT_TRUE(allreduce());
  const int launched = nccl_->counts().allreduces;
  const Shapes large{{DType::kF32, 300000}, {DType::kI64, 30}};
  EXPECT_FALSE(allreduce_while(1, large));
  EXPECT_EQ(nccl_->counts().allreduces, launched) << "on no rank";
  EXPECT_TRUE(allreduce_while(kNone, large)) << "there is memory again";
  EXPECT_TRUE(allreduce_while(1, large)) << "it has the block of the last one";
  expect_same_communicator();
}

TEST_F(NcclShortageTest, GoesOnWithRegisteredMemoryAfterwards) {
  make(3, true);
  EXPECT_TRUE(allreduce());
  const Shapes large{{DType::kF32, 300000}};
  EXPECT_FALSE(allreduce_while(2, large));
  EXPECT_TRUE(allreduce_while(kNone, large));
  EXPECT_EQ(nccl_->counts().in_registered, 3 * 2);
  expect_same_communicator();
}

TEST_F(NcclShortageTest, TakesOneCollectiveOfAnyKindThroughTheHost) {
  make(3, true);
  EXPECT_TRUE(allreduce());
  // Each needs more than the spare blocks of those before, and none can do without a bucket.
  const std::vector<Move> moves{
      {.kind = Kind::kAllgather, .counts = {30000, 30000, 30000}, .place = Place::kOverlaps},
      {.kind = Kind::kAllgather, .counts = {5, 210001, 0}, .place = Place::kInPlace},
      {Kind::kBroadcast, DType::kF64, {180001, 180001, 180001}, ReduceOp::kSum, 2},
      // There is memory for the part, but not for the slots of parts of different sizes.
      {Kind::kReduceScatter, DType::kF32, {600002, 600002, 600002}, ReduceOp::kAverage}};
  for (const Move& move : moves) {
    SCOPED_TRACE(static_cast<int>(move.kind));
    const NcclCounts before = nccl_->counts();
    EXPECT_FALSE(perform_while(0, move));
    EXPECT_EQ(nccl_->counts().bytes, before.bytes) << "NCCL was called on a rank";
    EXPECT_TRUE(perform_while(kNone, move));
  }
  expect_same_communicator();
}

/// NCCL writes the results to the outputs.
TEST_F(NcclShortageTest, DoesNotMatterToResultsThatNeedNoBucket) {
  make(3, true, 7, without_registration);
  EXPECT_TRUE(allreduce());
  const Move gathered{.kind = Kind::kAllgather, .counts = {5, 210001, 0}};
  const Move equal{.kind = Kind::kAllgather, .counts = {70000, 70000, 70000}};
  const Move scattered{
      .kind = Kind::kReduceScatter, .counts = {600000, 600000, 600000}, .op = ReduceOp::kAverage};
  for (const Move& move : {gathered, equal, scattered}) EXPECT_TRUE(perform_while(0, move));
  EXPECT_FALSE(allreduce_while(1, {{DType::kF32, 300000}})) << "it is in place there";
  EXPECT_TRUE(allreduce_while(2, {{DType::kF32, 300000}}));
  expect_same_communicator();
}

TEST_F(NcclShortageTest, WarnsOnceForEachShortage) {
  make(2, true);
  EXPECT_TRUE(allreduce());
  const Shapes large{{DType::kF32, 300000}};
  const auto warnings = [&](const auto& body) {
    ::testing::internal::CaptureStderr();
    body();
    return ::testing::internal::GetCapturedStderr();
  };
  const auto lacks = [&] { EXPECT_FALSE(allreduce_while(1, large)); };
  EXPECT_THAT(warnings(lacks), HasSubstr("a collective needs 1200000 bytes of device memory"));
  EXPECT_EQ(warnings(lacks), "");
  EXPECT_EQ(warnings([&] { EXPECT_TRUE(allreduce()); }), "") << "a small one";
  EXPECT_EQ(warnings(lacks), "");
  EXPECT_TRUE(allreduce_while(kNone, large));
  const Shapes larger{{DType::kF32, 600000}};
  EXPECT_THAT(warnings([&] { EXPECT_FALSE(allreduce_while(1, larger)); }), HasSubstr("2400000"));
}

TEST_F(NcclShortageTest, GivesSpareBlocksOfOtherSizesBackFirst) {
  make(1, true);
  const auto device = services_[0].devices->open(0).value();
  std::thread([&] {
    for (const std::size_t bytes : {kMiB, 2 * kMiB, 4 * kMiB})
      expect_ok(device->lend(bytes).status());
    leave_memory(kMiB);
    EXPECT_TRUE(device->lend(5 * kMiB).ok());
    leave_memory(kMiB);
    EXPECT_TRUE(device->lend_registrable(0, 6 * kMiB).ok());
    leave_memory(0);
    EXPECT_FALSE(device->lend(kMiB).ok());
  }).join();
}

TEST(MemoryShortage, EndsWhenAsMuchIsThereAgain) {
  MemoryShortage shortage;
  shortage.end(0);
  EXPECT_TRUE(shortage.begin(100));
  EXPECT_FALSE(shortage.begin(200));
  shortage.end(150);
  EXPECT_FALSE(shortage.begin(50));
  shortage.end(200);
  EXPECT_TRUE(shortage.begin(50));
}

}  // namespace
}  // namespace elastic::collectives::nccl
