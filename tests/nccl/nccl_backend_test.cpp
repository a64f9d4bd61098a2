// Allreduces of tensors on a device by the backend nccl, on stand-ins for NCCL and for the CUDA
// driver. Ranks are threads that share a device, and each has its own turn on it, as processes do.
#include "collectives/backend/nccl/nccl_backend.hpp"

#include <chrono>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/backend/nccl/bucket_result.hpp"
#include "nccl/gpu_tensors.hpp"
#include "nccl/nccl_fixture.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives::nccl {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Script = NcclScript;
using How = NcclScript::Allreduce;
using Shapes = std::vector<GpuTensors::Shape>;

class NcclBackendTest : public NcclFixture {
 protected:
  /// What came of an allreduce on all ranks.
  struct Outcome {
    std::vector<std::unique_ptr<GpuTensors>> tensors;
    std::vector<Payload> payloads;
    std::vector<Status> statuses;

    bool by_nccl() const { return payloads.front().device_result != nullptr; }
  };

  std::unique_ptr<Outcome> begin(const Shapes& shapes) {
    auto outcome = std::make_unique<Outcome>();
    outcome->payloads.resize(static_cast<std::size_t>(size_));
    outcome->statuses.resize(static_cast<std::size_t>(size_));
    for (int rank = 0; rank < size_; ++rank) {
      outcome->tensors.push_back(std::make_unique<GpuTensors>(gpu_, rank, shapes));
      outcome->tensors.back()->give(outcome->payloads[static_cast<std::size_t>(rank)]);
    }
    return outcome;
  }
  void run_on(int rank, Outcome& outcome, ReduceOp op) {
    const auto at = static_cast<std::size_t>(rank);
    outcome.statuses[at] =
        backend(rank).run(position_, outcome.tensors[at]->call(op), outcome.payloads[at]);
  }
  std::unique_ptr<Outcome> run(const Shapes& shapes, ReduceOp op) {
    auto outcome = begin(shapes);
    on_all_ranks([&](int rank) { run_on(rank, *outcome, op); });
    ++position_;
    return outcome;
  }
  /// Expects success, in the same way on all ranks, and right results; whether it was NCCL's.
  bool expect_right(Outcome& outcome, ReduceOp op) {
    for (std::size_t rank = 0; rank < outcome.payloads.size(); ++rank) {
      expect_ok(outcome.statuses[rank]);
      if (!outcome.statuses[rank].ok()) return false;
      EXPECT_EQ(outcome.payloads[rank].device_result != nullptr, outcome.by_nccl());
      expect_ok(outcome.tensors[rank]->take(outcome.payloads[rank], op, size_));
      outcome.tensors[rank]->expect(op, size_);
    }
    return outcome.by_nccl();
  }
  bool allreduce(const Shapes& shapes = {{DType::kF32, 1003}}, ReduceOp op = ReduceOp::kSum) {
    const auto outcome = run(shapes, op);
    return expect_right(*outcome, op);
  }
};

TEST_F(NcclBackendTest, ReducesEveryTypeByEveryOperation) {
  make(3, /*waits=*/true);
  for (const DType dtype : kDTypes) {
    for (const ReduceOp op : kOps) {
      SCOPED_TRACE(static_cast<int>(op));
      EXPECT_TRUE(allreduce({{dtype, 1003}}, op)) << "not by NCCL";
    }
  }
  EXPECT_EQ(nccl_->counts().inits, 3);
}

TEST_F(NcclBackendTest, ReducesManyTensorsAtOnce) {
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

const Shapes kNarrowed{{DType::kF32, 100003, {DType::kF16, 1024}},
                       {DType::kF64, 33, {DType::kF16, 1024}},
                       {DType::kF32, 70000, {DType::kBF16}},
                       {DType::kF32, 5},
                       {DType::kF16, 3}};
constexpr std::size_t kNarrowedBytes = (100003 + 33 + 70000 + 3) * 2 + 5 * 4;

TEST_F(NcclBackendTest, NarrowsWhatTravelsAsHalves) {
  make(3, true);
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
    EXPECT_TRUE(allreduce(kNarrowed, op));
    EXPECT_TRUE(allreduce({{DType::kF32, 1003, {DType::kBF16, 1}}}, op)) << "by itself";
  }
  // And little more, for what lies between tensors.
  EXPECT_THAT(nccl_->counts().bytes,
              ::testing::AllOf(::testing::Ge(2 * 3 * (kNarrowedBytes + 2006)),
                               ::testing::Le(2 * 3 * (kNarrowedBytes + 2006 + 4 * 64))));
}

TEST_F(NcclBackendTest, GoesThroughTheHostWhereOneRankCannotNarrow) {
  make(3, true);
  services_[1].devices = std::make_shared<SharedDevices>(
      CUDA_STAND_IN, [](auto& device) { return std::make_unique<CopyMover>(device); });
  make(3, true, 8);
  EXPECT_FALSE(allreduce(kNarrowed, ReduceOp::kAverage));
  EXPECT_TRUE(allreduce()) << "what is not narrowed it can";
  EXPECT_FALSE(allreduce(kNarrowed));
  EXPECT_TRUE(allreduce());
}

TEST_F(NcclBackendTest, ServesOneRankAlone) {
  make(1, true);
  EXPECT_TRUE(allreduce());
  EXPECT_TRUE(allreduce({{DType::kI32, 9}, {DType::kF32, 9}}, ReduceOp::kAverage));
}

TEST_F(NcclBackendTest, GoesThroughTheHostUntilAllRanksAreReady) {
  make(3, /*waits=*/false);
  EXPECT_FALSE(allreduce()) << "there cannot be a communicator yet";
  int calls = 1;
  while (!allreduce() && !HasFailure()) ++calls;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(allreduce()) << "it was ready before";
  EXPECT_EQ(nccl_->counts().inits, 3);
  EXPECT_EQ(nccl_->counts().ids, 1);
}

TEST_F(NcclBackendTest, StaysOnTheHostWhereOneRankNeverGetsReady) {
  nccl_->script(1, {.init = Script::Init::kNeverDone});
  make(3, false);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(allreduce());
  EXPECT_EQ(nccl_->counts().allreduces, 0);
}

TEST_F(NcclBackendTest, DoesNotWaitForWhatHasFailed) {
  nccl_->script(1, {.init = Script::Init::kFailsAtOnce, .failure = Script::kCudaError});
  make(2, /*waits=*/true, 7,
       [](NcclServices& its) { its.deadlines.start = milliseconds(1000) * kSlowness; });
  EXPECT_FALSE(allreduce());
  EXPECT_FALSE(allreduce());
  EXPECT_EQ(nccl_->counts().ids, 1) << "it was tried again in the same view";
}

TEST_F(NcclBackendTest, GoesThroughTheHostWhereTensorsLieElsewhereOnOneRank) {
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

/// Another lane of the rank has work of another communicator on it, which may wait for other ranks.
TEST_F(NcclBackendTest, GoesThroughTheHostWhereADeviceIsTaken) {
  make(2, true);
  ASSERT_TRUE(allreduce());
  {
    const auto device = services_[1].devices->open(0);
    const auto turn = device.value()->try_turn();
    ASSERT_TRUE(turn.owns_lock());
    EXPECT_FALSE(allreduce());
  }
  EXPECT_TRUE(allreduce());
}

TEST_F(NcclBackendTest, ReducesInMemoryThatIsRegistered) {
  make(3, true);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(allreduce());
  EXPECT_EQ(nccl_->counts().in_registered, 3 * 4);
  EXPECT_EQ(nccl_->counts().registrations, 3) << "once each block";
  EXPECT_TRUE(allreduce({{DType::kF32, 1000000}, {DType::kI8, 5}}));
  EXPECT_EQ(nccl_->counts().in_registered, 3 * 6);
  EXPECT_EQ(nccl_->counts().registrations, 6);
  make(3, true, 8);
  EXPECT_TRUE(allreduce());
  EXPECT_TRUE(allreduce());
  EXPECT_EQ(nccl_->counts().registrations, 9) << "with each communicator";
}

TEST_F(NcclBackendTest, RegistersNothingWhereARankCannot) {
  nccl_->script(1, {.refuses_memory = true});
  make(3, true);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(allreduce(kNarrowed, ReduceOp::kAverage));
  EXPECT_EQ(nccl_->counts().in_registered, 0);
  EXPECT_EQ(nccl_->counts().registrations, 3) << "it was tried again";
  EXPECT_EQ(nccl_->counts().aborts, 0);
}

TEST_F(NcclBackendTest, RegistersNothingWhereTheLibraryCannot) {
  make(2, true, 7,
       [](NcclServices& its) { its.devices = std::make_shared<SharedDevices>(CUDA_STAND_IN); });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(allreduce());
  EXPECT_EQ(nccl_->counts().registrations, 0);
}

/// The results are there still when the view is over, and their memory.
TEST_F(NcclBackendTest, KeepsWhatIsRegisteredUntilTheCommunicatorHasEnded) {
  nccl_->script(0, {.abort_waits = true});
  make(2, true);
  EXPECT_TRUE(allreduce());
  EXPECT_TRUE(allreduce());
  EXPECT_EQ(nccl_->counts().registrations, 2);
  backends_.clear();
  other_backends_.clear();
  until([&] { return nccl_->counts().aborts == 2; });
  for (NcclServices& each : services_) each.devices.reset();
  EXPECT_EQ(nccl_->violations(), std::vector<std::string>());
}

class NcclFailureTest : public NcclBackendTest, public ::testing::WithParamInterface<How> {};

TEST_P(NcclFailureTest, EndsInTheRightResultByWayOfTheHost) {
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

INSTANTIATE_TEST_SUITE_P(OfOneRank, NcclFailureTest,
                         ::testing::Values(How::kFailsAtOnce, How::kFailsLater, How::kHangs),
                         [](const auto& param) {
                           return param.param == How::kFailsAtOnce  ? "AtOnce"
                                  : param.param == How::kFailsLater ? "Later"
                                                                    : "InSilence";
                         });

TEST_F(NcclBackendTest, LetsGoOfNcclWhenTheViewChanges) {
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

TEST_F(NcclBackendTest, SeesAPeerDieDuringAnAllreduce) {
  nccl_->script(2, {.allreduce = How::kHangs});
  make(3, true);
  const auto outcome = begin({{DType::kF32, 3000}});
  std::thread killer([&] {
    until([&] { return nccl_->counts().allreduces == 3; });
    backend(2).abort();
  });
  on_all_ranks([&](int rank) {
    run_on(rank, *outcome, ReduceOp::kSum);
    if (rank != 2) return;
    killer.join();
    backends_[2].reset();
  });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome->statuses[rank].code(), Code::kPeerLost);
    outcome->tensors[rank]->expect_untouched();
  }
  EXPECT_EQ(nccl_->counts().aborts, 3);
}

TEST_F(NcclBackendTest, AWorkerThatNcclDoesNotLetGoHasToLeave) {
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

TEST_F(NcclBackendTest, BeginsNoCommunicatorBeforeTheLastIsGivenBack) {
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

TEST_F(NcclBackendTest, WaitsUntilTheLastCommunicatorIsGivenBack) {
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

TEST_F(NcclBackendTest, AWorkerLeavesWhoseLastCommunicatorIsNeverGivenBack) {
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

TEST_F(NcclBackendTest, ComparesWhatRanksCall) {
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

TEST_F(NcclBackendTest, HandsOverAResultThatLiesOnTheDevice) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
    make(3, true);
    const auto outcome =
        run({{DType::kF32, 777}, {DType::kI32, 8}, {DType::kF64, 9, {DType::kF16, 4}}}, op);
    ASSERT_TRUE(outcome->by_nccl());
    const std::uint64_t done = position_ - 1;
    make(3, true, 8);  // the view changes before rank 1 has heard of the end
    Backend::Handover handover;
    handover.givers = {0};
    handover.takers = {1};
    Backend::Parcel taken;
    on_all_ranks([&](int rank) {
      Backend::Parcel given;
      Backend::Parcel& parcel = rank == 1 ? taken : given;
      if (rank == 0) {
        given.payload = std::move(outcome->payloads[0]);
        expect_ok(given.payload.bring_to_host());
      }
      expect_ok(backend(rank).hand_over(done, handover, parcel));
    });
    EXPECT_EQ(taken.payload.device_result, nullptr);
    expect_ok(outcome->tensors[1]->take(taken.payload, op, 3));
    outcome->tensors[1]->expect(op, 3);
    expect_ok(outcome->tensors[2]->take(outcome->payloads[2], op, 3));  // after its view's end
    outcome->tensors[2]->expect(op, 3);
  }
}

/// Of a tensor that others have directly, an average is handed over divided.
TEST_F(NcclBackendTest, DividesWhatOthersWouldHaveDivided) {
  auto devices = std::make_shared<SharedDevices>(CUDA_STAND_IN);
  const auto device = devices->open(0).value();
  const testing::GpuArray<std::int32_t> array(gpu_, std::vector<std::int32_t>{7, -7, 100});
  const std::vector<DeviceTensor> tensors{
      {DType::kI32, 3, array.address(), array.address(), 0, false},
      {DType::kI32, 3, array.address(), array.address(), 64, true}};
  void* const stream = device->stream(0).value();
  const auto result = BucketResult::make(device, stream, tensors, 2).value();
  {
    const device::CurrentContext here = device->cuda()->enter();
    expect_ok(device->mover().pack(tensors, result->address(), stream));
  }
  Buffer data;
  expect_ok(result->gather(data));
  ASSERT_EQ(data.size(), 64 + 12U);
  const auto* const values = reinterpret_cast<const std::int32_t*>(data.data());
  EXPECT_THAT(std::vector(values, values + 3), ::testing::ElementsAre(7, -7, 100));
  EXPECT_THAT(std::vector(values + 16, values + 19), ::testing::ElementsAre(3, -3, 50));
}

}  // namespace
}  // namespace elastic::collectives::nccl
