// Allreduces of tensors in arenas: when peers read the memory in place, and when they do not.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "calls.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/native_backend.hpp"
#include "collectives/backend/native/view_capabilities.hpp"
#include "collectives/transport/ring/eager_channel.hpp"
#include "collectives/transport/ring/full_fence.hpp"
#include "native_world.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives {
namespace {

constexpr DType kDType = DType::kI32;
/// Not a multiple of what is worked on at a time.
constexpr std::size_t kCount = 300'007 / kSlowness;
constexpr std::size_t kBytes = kCount * size_of(kDType);

/// Ranks as threads, with arenas of their own.
class SharedWorld {
 public:
  explicit SharedWorld(int size)
      : arenas_(arenas_of(size, arena_wiring())), meshes_(wire(arenas_, arena_wiring())) {
    for (const auto& mesh : meshes_) {
      NativeOptions options;
      options.segment_bytes = 4096;
      options.arena = arenas_[backends_.size()];
      backends_.push_back(make_native_backend(7, mesh, options));
    }
  }
  int size() const { return static_cast<int>(meshes_.size()); }
  Backend& backend(int rank) { return *backends_[static_cast<std::size_t>(rank)]; }
  const ArenaPtr& arena(int rank) { return arenas_[static_cast<std::size_t>(rank)]; }

  /// Messages that `rank` has sent to its neighbour in the last operation.
  std::size_t messages(int rank) {
    return meshes_[static_cast<std::size_t>(rank)]->link((rank + 1) % size()).sent();
  }

  template <typename Body>
  void on_all_ranks(const Body& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) threads.emplace_back([&body, rank] { body(rank); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::vector<ArenaPtr> arenas_;
  std::vector<std::shared_ptr<transport::Mesh>> meshes_;
  std::vector<std::unique_ptr<Backend>> backends_;
};

std::shared_ptr<std::byte> tensor_of(int rank, const ArenaPtr& arena) {
  const std::shared_ptr<std::byte> memory =
      arena ? allocate(arena, kBytes)
            : std::shared_ptr<std::byte>(new std::byte[kBytes], std::default_delete<std::byte[]>());
  Buffer values;
  values.resize(kBytes);
  fill(values, section(kDType, kCount), contribution(rank, kCount, kDType));
  std::copy_n(values.data(), kBytes, memory.get());
  return memory;
}

/// Allreduces in place; on those ranks that `in_arena` names, in the arena.
template <typename InArena>
void allreduce(SharedWorld& world, std::uint64_t position, const InArena& in_arena) {
  Call call = allreduce_call(kDType, kCount);
  call.sections.clear();
  world.on_all_ranks([&](int rank) {
    const auto memory = tensor_of(rank, in_arena(rank) ? world.arena(rank) : nullptr);
    Buffer undo;
    const ZeroCopyTensor tensor{kDType, kCount, memory.get(), memory.get()};
    Payload mine;
    mine.form = ZeroCopyTensors{{&tensor, 1}};
    mine.undo = &undo;
    const Status status = world.backend(rank).run(position, call, mine);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(values_of(memory.get(), kDType, kCount),
              combined(world.size(), kCount, kDType, ReduceOp::kSum));
    EXPECT_TRUE(world.backend(rank).settle().ok());
  });
}

class SharedAllreduceTest : public testing::TestWithParam<int> {
 protected:
  SharedWorld world_{GetParam()};
};

TEST_P(SharedAllreduceTest, MovesNoDataThroughTheRings) {
  allreduce(world_, 0, [](int) { return true; });
  // Two barriers.
  for (int rank = 0; rank < world_.size(); ++rank) EXPECT_LE(world_.messages(rank), 4U);
}

TEST_P(SharedAllreduceTest, GoesTheUsualWayWhereOneTensorLiesElsewhere) {
  std::uint64_t position = 0;
  for (int elsewhere = 0; elsewhere < world_.size(); ++elsewhere) {
    allreduce(world_, position++, [&](int rank) { return rank != elsewhere; });
    EXPECT_GT(world_.messages(0), 4U);
    allreduce(world_, position++, [](int) { return true; });
    EXPECT_LE(world_.messages(0), 4U);
  }
}

TEST_P(SharedAllreduceTest, GoesTheUsualWayOnceOneRankCannotReadOthers) {
  allreduce(world_, 0, [](int) { return true; });
  world_.arena(world_.size() - 1)->stop_sharing();
  allreduce(world_, 1, [](int) { return true; });
  EXPECT_GT(world_.messages(0), 4U);
}

/// More tensors than an eager message has room for.
TEST_P(SharedAllreduceTest, GroupsOfAnySizeAreRight) {
  constexpr std::size_t kElements = 16;
  for (const std::size_t tensors : {2UL, 7UL, 2048UL, 2049UL}) {
    SharedWorld world(GetParam());
    Call call = allreduce_call(kDType, tensors * kElements);
    call.sections.clear();
    const auto expected = combined(world.size(), kElements, kDType, ReduceOp::kSum);
    world.on_all_ranks([&](int rank) {
      const auto memory = tensor_of(rank, world.arena(rank));
      Buffer undo;
      Payload mine;
      mine.undo = &undo;
      std::vector<ZeroCopyTensor> zero_copy;
      for (std::size_t i = 0; i < tensors; ++i) {
        std::byte* const at = memory.get() + i * kElements * size_of(kDType);
        if (i > 0) std::copy_n(memory.get(), kElements * size_of(kDType), at);
        zero_copy.push_back({kDType, kElements, at, at});
      }
      mine.form = ZeroCopyTensors{zero_copy};
      const Status status = world.backend(rank).run(0, call, mine);
      ASSERT_TRUE(status.ok()) << status.message();
      for (const ZeroCopyTensor& tensor : zero_copy) {
        ASSERT_EQ(values_of(tensor.output, kDType, kElements), expected);
      }
      EXPECT_TRUE(world.backend(rank).settle().ok());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, SharedAllreduceTest, testing::Values(2, 3, kSlowness > 1 ? 4 : 5));

/// Rank 1 of two takes the steps that each test says, against a real rank 0.
class GivesUp : public testing::Test {
 protected:
  static constexpr transport::OpTag kTag{7, 0, transport::OpTag::kNormal};

  void SetUp() override {
    call_.sections.clear();
    rank0_ = std::thread([this] { run_rank0(); });
    mesh_->begin({kTag.generation, kTag.position, transport::OpTag::kBeforeOperation}, {});
    const plan::Hosts host = plan::Hosts::one(2);
    Executor executor(*mesh_);
    PlanCache plans(1, host, NativeOptions().segment_bytes, {});
    EXPECT_TRUE(negotiate_capabilities(*mesh_, executor, plans, host, {}, true).ok());
    mesh_->begin(kTag, call_.fingerprint);
  }
  void TearDown() override {
    rank0_.join();
    EXPECT_EQ(outcome_.code(), Code::kAborted) << outcome_.message();
    EXPECT_NE(outcome_.message().find("rank 1 gave the operation up"), std::string::npos)
        << outcome_.message();
    EXPECT_EQ(left_behind_, contribution(0, kCount, kDType));
  }

  transport::EagerChannel& eager_channel() { return *mesh_->link(0).eager_channel(); }
  void say_where() {
    const std::uint64_t at = *arenas_[1]->offset_of(memory_.get(), kBytes);
    const std::array<std::uint64_t, 2> place{at, at};
    eager_channel().post(kTag, call_.fingerprint, std::as_bytes(std::span(place)));
  }
  /// Acts as a rank with a failed attempt, and then as its caller, which overwrites the tensor.
  void give_up() {
    eager_channel().unpin();
    transport::full_fence();
    std::fill_n(memory_.get(), kBytes, std::byte{0x55});
  }
  /// The halves of a barrier.
  void hear() {
    const std::size_t before = mesh_->link(0).received();
    mesh_->link(0).receive({});
    EXPECT_TRUE(mesh_->run_until([&] { return mesh_->link(0).received() > before; }).ok());
  }
  void say() {
    const std::size_t before = mesh_->link(0).sent();
    mesh_->link(0).send({});
    EXPECT_TRUE(mesh_->run_until([&] { return mesh_->link(0).sent() > before; }).ok());
  }

 private:
  void run_rank0() {
    NativeOptions options;
    options.arena = arenas_[0];
    const auto backend = make_native_backend(kTag.generation, meshes_[0], options);
    const auto memory = tensor_of(0, arenas_[0]);
    Buffer undo;
    const ZeroCopyTensor tensor{kDType, kCount, memory.get(), memory.get()};
    Payload mine;
    mine.form = ZeroCopyTensors{{&tensor, 1}};
    mine.undo = &undo;
    outcome_ = backend->run(kTag.position, call_, mine);
    left_behind_ = values_of(memory.get(), kDType, kCount);
  }

  Call call_ = allreduce_call(kDType, kCount);
  const std::vector<ArenaPtr> arenas_ = arenas_of(2, arena_wiring());
  const std::vector<std::shared_ptr<transport::Mesh>> meshes_ = wire(arenas_, arena_wiring());
  const std::shared_ptr<transport::Mesh> mesh_ = meshes_[1];
  const std::shared_ptr<std::byte> memory_ = tensor_of(1, arenas_[1]);
  std::thread rank0_;
  Status outcome_;
  std::vector<double> left_behind_;
};

/// Rank 0 does not take the overwritten memory for the input of rank 1.
TEST_F(GivesUp, BeforeItsInputIsRead) {
  eager_channel().pin(kTag);
  give_up();
  say_where();
  say();
}

/// Rank 0 does not take it for the result of rank 1 either.
TEST_F(GivesUp, AfterAllHaveReduced) {
  eager_channel().pin(kTag);
  say_where();
  hear();
  give_up();
  say();
}

}  // namespace
}  // namespace elastic::collectives
