// Allreduces of tensors on a device by the backend nccl where NCCL fails, hangs, or does not let
// go, and where ranks and views end.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nccl/nccl_allreduce_fixture.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives::nccl {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using How = NcclScript::Allreduce;

class NcclFailureTest : public NcclAllreduceFixture {
 protected:
  static void without_registration(NcclServices& services) {
    services.devices = std::make_shared<SharedDevices>(CUDA_STAND_IN);
  }
};

class NcclFailingTest : public NcclFailureTest, public ::testing::WithParamInterface<How> {};

TEST_P(NcclFailingTest, EndsInTheRightResultByWayOfTheHost) {
  nccl_->script(1, {.allreduce = GetParam(), .works_before = 2});
  make(3, true, 7, [](NcclServices& its) { its.operation = milliseconds(4000) * kSlowness; });
  EXPECT_TRUE(allreduce());
  EXPECT_TRUE(allreduce({{DType::kF32, 50}}, ReduceOp::kAverage));
  EXPECT_FALSE(
      allreduce({{DType::kF32, 5000, {DType::kF16, 0.5F}}, {DType::kI64, 30}}, ReduceOp::kAverage));
  EXPECT_EQ(nccl_->counts().aborts, 3) << "what it has of the devices";
  const int launched = nccl_->counts().allreduces;
  EXPECT_FALSE(allreduce()) << "NCCL is off in this view";
  EXPECT_EQ(nccl_->counts().allreduces, launched);
  nccl_->script(1, {});
  make(3, true, 8);
  EXPECT_TRUE(allreduce()) << "and back in the next";
}

INSTANTIATE_TEST_SUITE_P(OfOneRank, NcclFailingTest,
                         ::testing::Values(How::kFailsAtOnce, How::kFailsLater, How::kHangs),
                         [](const auto& param) {
                           return param.param == How::kFailsAtOnce  ? "AtOnce"
                                  : param.param == How::kFailsLater ? "Later"
                                                                    : "InSilence";
                         });

TEST_F(NcclFailureTest, LetsGoOfNcclWhenTheViewChanges) {
  nccl_->script(1, {.allreduce = How::kHangs});
  make(3, true);
  const auto outcome = begin({{DType::kF32, 3000, {DType::kBF16}}, {DType::kF32, 1}});
  std::thread aborter([&] {
    until([&] { return nccl_->counts().allreduces == 6; });
    for (auto& each : backends_) each->abort();
  });
  on_all_ranks([&](int rank) { run_on(rank, *outcome, ReduceOp::kSum); });
  aborter.join();
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(outcome->statuses[rank].code(), Code::kAborted);
    outcome->tensors[rank]->expect_untouched();
  }
  EXPECT_EQ(nccl_->counts().aborts, 3);
  nccl_->script(1, {});
  make(3, true, 8);
  // The attempt in the next view, from the same inputs.
  for (std::size_t rank = 0; rank < 3; ++rank) {
    outcome->tensors[rank]->give(outcome->payloads[rank]);
  }
  on_all_ranks([&](int rank) { run_on(rank, *outcome, ReduceOp::kSum); });
  EXPECT_TRUE(expect_right(*outcome, ReduceOp::kSum));
}

/// NCCL takes a communicator apart for half a second and more, which no survivor is to wait for.
TEST_F(NcclFailureTest, LetsGoOfTheTensorsBeforeNcclHasReleasedTheCommunicator) {
  for (const int rank : {0, 1, 2}) {
    nccl_->script(rank, {.abort_waits = true, .allreduce = rank == 1 ? How::kHangs : How::kWorks});
  }
  make(3, true, 7, without_registration);
  const auto polls = std::make_shared<std::array<std::atomic<int>, 3>>();
  nccl_->on_poll([polls](int rank) { ++(*polls)[static_cast<std::size_t>(rank)]; });
  const auto outcome = begin({{DType::kF32, 3000}});
  std::thread aborter([&] {
    until([&] { return nccl_->counts().allreduces == 3; });
    // At most two polls until NCCL has accepted a call. From then on the device is waited for.
    for (auto& each : *polls) each = 0;
    until([&] { return std::ranges::all_of(*polls, [](const auto& each) { return each > 3; }); });
    for (auto& each : backends_) each->abort();
  });
  on_all_ranks([&](int rank) { run_on(rank, *outcome, ReduceOp::kSum); });
  aborter.join();
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(outcome->statuses[rank].code(), Code::kAborted);
    outcome->tensors[rank]->expect_untouched();
  }
  until([&] { return nccl_->counts().waiting == 3; });
  nccl_->release();
}

/// NCCL has not begun the call on rank 1, which can only wait for its abort. That waits for the
/// others', which have to hear of the failure before.
TEST_F(NcclFailureTest, TellsTheOthersBeforeItWaitsForItsOwnAbort) {
  for (const int rank : {0, 1, 2}) {
    nccl_->script(rank,
                  {.abort_waits = true, .allreduce = rank == 1 ? How::kFailsAtOnce : How::kWorks});
  }
  make(3, true, 7, without_registration);
  std::thread releaser([&] {
    until([&] { return nccl_->counts().aborts == 3; });
    nccl_->release();
  });
  EXPECT_FALSE(allreduce());
  releaser.join();
}

/// Other ranks may still be at it, as over NVLink.
TEST_F(NcclFailureTest, KeepsRegisteredMemoryUntilNcclHasReleasedTheCommunicator) {
  for (const int rank : {0, 1}) {
    nccl_->script(rank, {.abort_waits = true, .allreduce = How::kHangs});
  }
  make(2, true);
  const auto outcome = begin({{DType::kF32, 3000}});
  std::atomic<bool> released = false;
  std::thread aborter([&] {
    until([&] { return nccl_->counts().allreduces == 2; });
    for (auto& each : backends_) each->abort();
    until([&] { return nccl_->counts().waiting == 2; });
    released = true;
    nccl_->release();
  });
  on_all_ranks([&](int rank) {
    run_on(rank, *outcome, ReduceOp::kSum);
    EXPECT_TRUE(released);
  });
  aborter.join();
}

TEST_F(NcclFailureTest, SeesAPeerDieDuringAnAllreduce) {
  nccl_->script(2, {.allreduce = How::kHangs});
  make(3, true);
  const auto outcome = begin({{DType::kF32, 3000}});
  while_one_ends(
      2, [&] { return nccl_->counts().allreduces == 3; },
      [&](int rank) { run_on(rank, *outcome, ReduceOp::kSum); });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome->statuses[rank].code(), Code::kPeerLost);
    outcome->tensors[rank]->expect_untouched();
  }
  EXPECT_EQ(nccl_->counts().aborts, 3);
}

TEST_F(NcclFailureTest, AWorkerThatNcclDoesNotLetGoHasToLeave) {
  nccl_->script(1, {.abort_waits = true, .allreduce = How::kHangs});
  make(2, true, 7, [](NcclServices& its) {
    its.deadlines.abort = milliseconds(2000) * kSlowness;
    its.operation = milliseconds(1000);
  });
  const auto outcome = begin({{DType::kF32, 10}});
  on_all_ranks([&](int rank) {
    run_on(rank, *outcome, ReduceOp::kSum);
    if (rank == 1) backends_[1].reset();
  });
  EXPECT_EQ(outcome->statuses[1].code(), Code::kUnavailable);
  EXPECT_THAT(outcome->statuses[1].message(), HasSubstr("this worker has to exit"));
  EXPECT_EQ(outcome->statuses[0].code(), Code::kPeerLost);
}

TEST_F(NcclFailureTest, BeginsNoCommunicatorBeforeTheLastIsGivenBack) {
  nccl_->script(0, {.abort_waits = true});
  make(2, true);
  EXPECT_TRUE(allreduce());
  make(2, /*waits=*/false, 8);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(allreduce());
  EXPECT_EQ(nccl_->counts().inits, 2);
  nccl_->release();
  while (!allreduce() && !HasFailure()) continue;
  EXPECT_EQ(nccl_->counts().inits, 4);
}

TEST_F(NcclFailureTest, WaitsUntilTheLastCommunicatorIsGivenBack) {
  nccl_->script(0, {.abort_waits = true});
  make(2, true);
  EXPECT_TRUE(allreduce());
  make(2, /*waits=*/true, 8);
  std::thread releaser([&] {
    until([&] { return nccl_->counts().aborts == 2; });
    nccl_->release();
  });
  EXPECT_TRUE(allreduce());
  releaser.join();
}

TEST_F(NcclFailureTest, AWorkerLeavesWhoseLastCommunicatorIsNeverGivenBack) {
  nccl_->script(1, {.abort_waits = true});
  make(2, true, 7, [](NcclServices& its) { its.deadlines.abort = milliseconds(500) * kSlowness; });
  EXPECT_TRUE(allreduce());
  make(2, true, 8);
  const auto outcome = begin({{DType::kF32, 10}});
  on_all_ranks([&](int rank) {
    run_on(rank, *outcome, ReduceOp::kSum);
    if (rank == 1) backends_[1].reset();
  });
  EXPECT_EQ(outcome->statuses[1].code(), Code::kUnavailable);
  EXPECT_THAT(outcome->statuses[1].message(), HasSubstr("ncclCommAbort has not returned"));
  EXPECT_THAT(outcome->statuses[1].message(), HasSubstr("this worker has to exit"));
  EXPECT_EQ(outcome->statuses[0].code(), Code::kPeerLost);
}

}  // namespace
}  // namespace elastic::collectives::nccl
