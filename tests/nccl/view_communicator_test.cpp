// The communicator that the lanes of a view share: when it is begun, and on which device.
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/backend/nccl/communicator/view_communicators.hpp"
#include "nccl/gpu_tensors.hpp"
#include "nccl/nccl_fixture.hpp"

namespace elastic::collectives::nccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ViewCommunicatorTest : public NcclFixture {
 protected:
  /// A rank's tensor on `gpu`, in an allreduce of one of its backends.
  struct Allreduce {
    Allreduce(const testing::Gpu& gpu, int rank, int device)
        : tensors(gpu, rank, {{DType::kF32, 1003}}) {
      tensors.give(payload, device);
    }
    Status run(Backend& backend, std::uint64_t position) {
      status = backend.run(position, tensors.call(ReduceOp::kSum), payload);
      return status;
    }
    /// Whether NCCL made it.
    bool expect_right(int size) {
      expect_ok(status);
      if (!status.ok()) return false;
      const bool by_nccl = payload.device_result() != nullptr;
      expect_ok(tensors.take(payload, ReduceOp::kSum, size));
      tensors.expect(ReduceOp::kSum, size);
      return by_nccl;
    }

    GpuTensors tensors;
    Payload payload;
    Status status;
  };
  using Allreduces = std::vector<std::unique_ptr<Allreduce>>;

  Allreduces allreduces(const testing::Gpu& gpu, int device = 0) const {
    Allreduces all;
    for (int rank = 0; rank < size_; ++rank) {
      all.push_back(std::make_unique<Allreduce>(gpu, rank, device));
    }
    return all;
  }
  /// Runs an allreduce on all ranks. Returns whether NCCL made it.
  bool allreduce(const testing::Gpu& gpu, int device = 0) {
    Allreduces all = allreduces(gpu, device);
    on_all_ranks([&](int rank) {
      (void)all[static_cast<std::size_t>(rank)]->run(backend(rank), position_);
    });
    ++position_;
    bool by_nccl = true;
    for (auto& each : all) by_nccl = each->expect_right(size_) && by_nccl;
    return by_nccl;
  }
  bool allreduce() { return allreduce(gpu_); }

  /// Sends rank 0's state to all others, as after workers have joined.
  void transfer() {
    on_all_ranks([&](int rank) {
      Call call;
      call.kind = Kind::kTransfer;
      call.donors = {0};
      for (int each = 1; each < size_; ++each) call.receivers.push_back(each);
      call.sections = {{DType::kU8, 4, 0}};
      call.fingerprint.kind = static_cast<std::uint8_t>(call.kind);
      Payload payload;
      payload.data.resize(4);
      std::memcpy(payload.data.data(), rank == 0 ? "all?" : "none", 4);
      expect_ok(backend(rank).run(position_, call, payload));
      EXPECT_EQ(std::memcmp(payload.data.data(), "all?", 4), 0);
    });
    ++position_;
  }
  /// Runs an allgather of tensors in host memory.
  void gather() {
    on_all_ranks([&](int rank) {
      Call call;
      call.kind = Kind::kAllgather;
      call.sections = {{DType::kU8, 1, 0}};
      call.fingerprint.kind = static_cast<std::uint8_t>(call.kind);
      Payload payload;
      payload.data.resize(1);
      expect_ok(backend(rank).run(position_, call, payload));
    });
    ++position_;
  }
  ViewCommunicator::Standing standing(int rank, std::uint64_t generation) {
    const NcclServices& services = services_[static_cast<std::size_t>(rank)];
    return services.communicators->of("", {generation, rank, size_}, services)->standing();
  }
};

TEST_F(ViewCommunicatorTest, IsOneForAllLanes) {
  make(2, /*waits=*/true);
  EXPECT_TRUE(allreduce());
  Allreduces all = allreduces(gpu_);
  on_all_ranks(
      [&](int rank) { (void)all[static_cast<std::size_t>(rank)]->run(other_backend(rank), 0); });
  for (auto& each : all) EXPECT_TRUE(each->expect_right(size_));
  EXPECT_EQ(nccl_->counts().inits, 2);
}

/// Both lanes carry the bootstrap exchange, and a rank uses its device for one lane at a time.
TEST_F(ViewCommunicatorTest, IsBegunByLanesBesideEachOther) {
  constexpr std::uint64_t kTimes = 20;
  make(3, /*waits=*/true);
  std::vector<Allreduces> of_lanes[2];
  for (auto& of_lane : of_lanes) {
    for (std::uint64_t i = 0; i < kTimes; ++i) of_lane.push_back(allreduces(gpu_));
  }
  std::thread other([&] {
    on_all_ranks([&](int rank) {
      for (std::uint64_t i = 0; i < kTimes; ++i) {
        (void)of_lanes[1][i][static_cast<std::size_t>(rank)]->run(other_backend(rank), i);
      }
    });
  });
  on_all_ranks([&](int rank) {
    for (std::uint64_t i = 0; i < kTimes; ++i) {
      (void)of_lanes[0][i][static_cast<std::size_t>(rank)]->run(backend(rank), i);
    }
  });
  other.join();
  for (auto& of_lane : of_lanes) {
    for (auto& all : of_lane) {
      for (auto& each : all) (void)each->expect_right(size_);
    }
  }
  // Lanes that compete for the device on every rank leave NCCL unused; one alone does not.
  position_ = kTimes;
  EXPECT_TRUE(allreduce());
  EXPECT_EQ(nccl_->counts().inits, 3) << "one communicator, whichever lane began it";
}

/// A joiner has to wait for the state anyway, and the members wait with it.
TEST_F(ViewCommunicatorTest, IsMadeWhileStateTravels) {
  make(2, /*waits=*/true);
  EXPECT_TRUE(allreduce()) << "now the device is known";
  make(2, /*waits=*/false, 8, [](NcclServices& its) { its.head_start = std::chrono::hours(1); });
  transfer();
  until([&] { return nccl_->counts().inits == 4; });
  while (!standing(0, 8).ready || !standing(1, 8).ready) gather();
  EXPECT_TRUE(allreduce()) << "the first is NCCL's already";
}

TEST_F(ViewCommunicatorTest, HoldsUpNoStateForLong) {
  make(2, /*waits=*/true);
  EXPECT_TRUE(allreduce());
  nccl_->script(0, {.abort_waits = true});
  // There is no new one before the last is given back, which takes until the end of the test.
  make(2, /*waits=*/false, 8, [](NcclServices& its) {
    its.head_start = std::chrono::milliseconds(50);
    its.deadlines.abort = std::chrono::hours(1);
  });
  transfer();
  EXPECT_EQ(nccl_->counts().inits, 2);
}

TEST_F(ViewCommunicatorTest, IsNotBegunWhereNoRankKnowsADevice) {
  make(2, /*waits=*/false);
  transfer();
  gather();
  EXPECT_EQ(standing(0, 7).communicator, nullptr);
  EXPECT_EQ(standing(1, 7).communicator, nullptr);
}

TEST_F(ViewCommunicatorTest, IsBegunAnewWhereTensorsDoNotLieAsExpected) {
  make(2, /*waits=*/true);
  EXPECT_TRUE(allreduce());
  make(2, /*waits=*/true, 8);
  transfer();
  const testing::Gpu second(1, CUDA_STAND_IN);
  EXPECT_TRUE(allreduce(second, 1));
  EXPECT_FALSE(allreduce()) << "there is one, and that is in use";
  EXPECT_TRUE(allreduce(second, 1));
}

TEST_F(ViewCommunicatorTest, RefusesTwoRanksOnOneDevice) {
  make(3, /*waits=*/true, 7, [](NcclServices& its) { its.host = "one"; });
  for (int i = 0; i < 2; ++i) {
    Allreduces all = allreduces(gpu_);
    on_all_ranks([&](int rank) {
      (void)all[static_cast<std::size_t>(rank)]->run(backend(rank), position_);
    });
    ++position_;
    for (auto& each : all) {
      EXPECT_EQ(each->status.code(), Code::kMismatch);
      EXPECT_THAT(each->status.message(),
                  AllOf(HasSubstr("ranks 0 and 1 have their tensors on one CUDA device"),
                        HasSubstr("(GPU-00000000-0000-0000-0000-000000000000)"),
                        HasSubstr("elastic::local_rank()"), HasSubstr("NCCL_HOSTID")));
      each->tensors.expect_untouched();
    }
    gather();  // those of host memory go on
  }
  EXPECT_EQ(nccl_->counts().inits, 0);
}

/// NCCL's error of two instances of one GPU, which have ids of their own, does not name the cause.
TEST_F(ViewCommunicatorTest, SaysThatAFailureIsOnInstancesOfAGpu) {
  for (const bool partitioned : {true, false}) {
    ::setenv("CUDA_STAND_IN_NAME",
             partitioned ? "NVIDIA A100-SXM4-40GB MIG 1g.5gb" : "NVIDIA A100-SXM4-40GB",
             /*overwrite=*/1);
    make(2, /*waits=*/true, partitioned ? 7 : 8);
    for (int rank = 0; rank < 2; ++rank) {
      nccl_->script(rank,
                    {.init = NcclScript::Init::kFailsAtOnce, .failure = NcclScript::kInvalidUsage});
    }
    ::testing::internal::CaptureStderr();
    EXPECT_FALSE(allreduce()) << "it goes through host memory";
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr("NCCL cannot be used; tensors on devices go through host memory"));
    const auto names_the_cause =
        AllOf(HasSubstr("is a MIG instance (NVIDIA A100-SXM4-40GB MIG 1g.5gb)"),
              HasSubstr("give each rank a GPU of its own"), HasSubstr("ELASTIC_BACKEND=native"));
    if (partitioned) {
      EXPECT_THAT(said, names_the_cause);
    } else {
      EXPECT_THAT(said, ::testing::Not(HasSubstr("MIG")));
    }
  }
  ::unsetenv("CUDA_STAND_IN_NAME");
}

TEST_F(ViewCommunicatorTest, AsksNoRankWhereNcclLetsRanksShareADevice) {
  make(2, /*waits=*/true, 7, [](NcclServices& its) { its.host.reset(); });
  EXPECT_TRUE(allreduce());
}

}  // namespace
}  // namespace elastic::collectives::nccl
