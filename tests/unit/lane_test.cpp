#include "coordinator/lane.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "lane_fixture.hpp"
#include "tests/unit/allocations.hpp"

namespace elastic::coordinator {
namespace {

using collectives::Backend;
using collectives::Call;
using collectives::Kind;
using collectives::Payload;

TEST_F(LaneTest, ALostBroadcastEndsOnlyWhenAllHaveMet) {
  std::vector<std::string> needs;
  Lane lane("lane",
            {[&](std::uint64_t /*position*/, const std::string& its) { needs.push_back(its); },
             [](auto, const auto&, const auto&) {}, [] {}});
  float data = 0;
  BroadcastOperation broadcast({&data, 1, DType::kF32}, CallRoot(1, members(6)));

  lane.install(losing(view(7, Status(Code::kAborted, "the view changes"))));
  {
    Lane::Ownership ownership = lane.acquire(Milliseconds(0)).value();
    EXPECT_FALSE(lane.attempt(ownership, broadcast).final);
  }
  EXPECT_EQ(lane.position(), 0U);
  lane.freeze();
  EXPECT_EQ(needs,
            std::vector<std::string>{"other"});  // so that the next view has it as lost again

  lane.install(losing(view(8)));
  Lane::Ownership ownership = lane.acquire(Milliseconds(0)).value();
  const Lane::Attempt second = lane.attempt(ownership, broadcast);
  EXPECT_TRUE(second.final);
  EXPECT_EQ(second.status.code(), Code::kRootLost);
  EXPECT_EQ(lane.position(), 1U);
  ASSERT_EQ(calls_.size(), 2U);
  for (const Call& call : calls_) {
    EXPECT_EQ(call.kind, Kind::kBarrier);
    EXPECT_NE(call.fingerprint, BarrierOperation().call(members(8)).fingerprint);
  }
}

/// A rank that was read in an earlier view may now belong to another worker.
TEST_F(LaneTest, ABroadcastWhoseRootIsGoneDoesNotBegin) {
  Lane lane("lane", {[](auto, const auto&) {}, [](auto, const auto&, const auto&) {}, [] {}});
  float data = 0;
  Members before = members(6);
  before.incarnations = {"gone", "me", "other"};
  before.rank = 1;
  BroadcastOperation broadcast({&data, 1, DType::kF32}, CallRoot(0, before));

  lane.install(view(7));
  EXPECT_EQ(lane.run(broadcast, Milliseconds(0)).status().code(), Code::kAborted);
  EXPECT_TRUE(calls_.empty());
  EXPECT_EQ(lane.position(), 0U);

  // If other members were in it, it ends in an error on all of them.
  lane.freeze();
  lane.install(losing(view(8)));
  EXPECT_EQ(lane.run(broadcast, Milliseconds(0)).status().code(), Code::kRootLost);
  EXPECT_EQ(lane.position(), 1U);

  EXPECT_EQ(lane.run(broadcast, Milliseconds(0)).status().code(), Code::kAborted);
  EXPECT_EQ(calls_.size(), 1U);
}

/// The worker is the same for all members: they end alike, and in the order of their calls.
TEST_F(LaneTest, ABroadcastFromAWorkerThatIsNoMemberEndsOnlyWhenAllHaveMet) {
  Lane lane("lane", {[](auto, const auto&) {}, [](auto, const auto&, const auto&) {}, [] {}});
  float data = 0;
  BroadcastOperation broadcast({&data, 1, DType::kF32}, CallRoot(WorkerId{3}, members(6)));

  lane.install(view(7, Status(Code::kAborted, "the view changes")));
  {
    Lane::Ownership ownership = lane.acquire(Milliseconds(0)).value();
    EXPECT_FALSE(lane.attempt(ownership, broadcast).final);
  }
  EXPECT_EQ(lane.position(), 0U);
  lane.freeze();

  lane.install(view(8));
  EXPECT_EQ(lane.run(broadcast, Milliseconds(0)).status().code(), Code::kRootLost);
  EXPECT_EQ(lane.position(), 1U);
  ASSERT_EQ(calls_.size(), 2U);
  for (const Call& call : calls_) EXPECT_EQ(call.kind, Kind::kBarrier);

  // Members that name different workers differ, also where neither is a member.
  BroadcastOperation another({&data, 1, DType::kF32}, CallRoot(WorkerId{4}, members(6)));
  EXPECT_EQ(lane.run(another, Milliseconds(0)).status().code(), Code::kRootLost);
  EXPECT_NE(calls_.back().fingerprint, calls_.front().fingerprint);
}

TEST_F(LaneTest, ABroadcastFromAWorkerHasTheRootOfItsView) {
  Lane lane("lane", {[](auto, const auto&) {}, [](auto, const auto&, const auto&) {}, [] {}});
  float data = 0;
  Members before = members(6);
  before.incarnations = {"gone", "me", "other"};
  before.ids = std::make_shared<std::vector<WorkerId>>(std::vector<WorkerId>{3, 1, 2});
  before.rank = 1;
  BroadcastOperation broadcast({&data, 1, DType::kF32}, CallRoot(WorkerId{2}, before));

  lane.install(view(7));
  EXPECT_TRUE(lane.run(broadcast, Milliseconds(0)).ok());
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(calls_[0].kind, Kind::kBroadcast);
  EXPECT_EQ(calls_[0].root, 1);
  // Another root is another call, and so is the same one by its rank.
  EXPECT_NE(calls_[0].fingerprint,
            BroadcastOperation({&data, 1, DType::kF32}, CallRoot(WorkerId{1}, members(7)))
                .call(members(7))
                .fingerprint);
  EXPECT_NE(calls_[0].fingerprint,
            BroadcastOperation({&data, 1, DType::kF32}, CallRoot(1, members(7)))
                .call(members(7))
                .fingerprint);
}

/// The control thread, which installs views, must not wait for a repair that is on its way out.
TEST_F(LaneTest, InstallDoesNotWaitForAnEarlierRepair) {
  std::promise<void> quiesced;
  std::promise<void> installed;
  Lane lane("lane", {[&](std::uint64_t /*position*/, const std::string& /*needs*/) {
                       quiesced.set_value();
                       installed.get_future().wait();
                     },
                     [](auto, const auto&, const auto&) {}, [] {}});
  lane.install(as_sender(view(7)));
  backend_->handing_over.get_future().wait();
  lane.freeze();
  quiesced.get_future().wait();  // the repair has released the lane, and is stuck in its callback
  lane.install(view(8));
  installed.set_value();
}

/// A part of a reduce_scatter, on a device.
class PartOnDevice final : public collectives::DeviceResult {
 public:
  Result<void*> begin_unpack() override { return static_cast<void*>(nullptr); }
};

/// Fails when this rank has its part, and hands over another's.
class PartBackend final : public Backend {
 public:
  explicit PartBackend(std::shared_ptr<PartOnDevice> part) : part_(std::move(part)) {}
  Status run(std::uint64_t /*position*/, const Call& /*call*/, Payload& payload) override {
    payload.form = collectives::ResultOnDevice{part_, {}, true};
    return Status(Code::kPeerLost, "before all have said that they have theirs", 1);
  }
  Status hand_over(std::uint64_t /*position*/, const HandoverPairs& /*pairs*/,
                   Parcel& parcel) override {
    parcel.payload.data.resize(8);
    parcel.fingerprint =
        transport::performed_by(name(), BarrierOperation().call(Members()).fingerprint);
    return {};
  }
  void abort() noexcept override {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "part"; }

 private:
  const std::shared_ptr<PartOnDevice> part_;
};

/// Remembers what it is given.
class NotingOperation final : public BarrierOperation {
 public:
  void unpack(const Members& /*members*/, const Payload& payload) override {
    result = payload.device_result();
    bytes = payload.data.size();
  }

  std::shared_ptr<const collectives::DeviceResult> result;
  std::size_t bytes = 0;
};

/// Others have completed the operation: this rank's part is its own, and lies where it was made.
TEST_F(LaneTest, APartInHandIsDeliveredFromTheDevice) {
  Lane lane("lane", {[](auto, const auto&) {}, [](auto, const auto&, const auto&) {}, [] {}});
  const auto part = std::make_shared<PartOnDevice>();
  const auto parted = [&](std::uint64_t generation) {
    auto made = view(generation);
    made->backend = std::make_unique<PartBackend>(part);
    return made;
  };
  NotingOperation operation;
  lane.install(parted(7));
  {
    Lane::Ownership ownership = lane.acquire(Milliseconds(0)).value();
    EXPECT_FALSE(lane.attempt(ownership, operation).final);
  }
  lane.freeze();
  const auto taking = parted(8);
  taking->position = 1;
  taking->handover = {{1}, {0}};
  lane.install(taking);  // which starts the repair thread: it may have the lane for a moment
  EXPECT_TRUE(lane.run(operation, Milliseconds(10'000)).ok());
  EXPECT_EQ(operation.result, part);
  EXPECT_EQ(operation.bytes, 0U) << "it is another's part";
  EXPECT_EQ(lane.position(), 1U);
}

/// Writes 1, 2, 3, ... to zero-copy tensors. Settles as told, and hands over the result that it
/// has.
class ZeroCopyBackend final : public Backend {
 public:
  ZeroCopyBackend(Status settles, std::vector<std::int32_t>& given)
      : settles_(std::move(settles)), given_(given) {}

  Status run(std::uint64_t /*position*/, const Call& /*call*/, Payload& payload) override {
    std::int32_t next = 1;
    for (const collectives::ZeroCopyTensor& tensor : payload.zero_copy()) {
      auto* const values = reinterpret_cast<std::int32_t*>(tensor.output);
      for (std::size_t i = 0; i < tensor.count; ++i) values[i] = next++;
    }
    return {};
  }
  plan::AllreduceLimits allreduce_limits() const override { return {.zero_copy_from = 1}; }
  Status settle() override { return settles_; }
  Status hand_over(std::uint64_t /*position*/, const HandoverPairs& /*pairs*/,
                   Parcel& parcel) override {
    parcel.payload.make_contiguous();
    given_.resize(parcel.payload.data.size() / sizeof(std::int32_t));
    std::memcpy(given_.data(), parcel.payload.data.data(), parcel.payload.data.size());
    return {};
  }
  void abort() noexcept override {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "zero_copy"; }

 private:
  const Status settles_;
  std::vector<std::int32_t>& given_;
};

/// The call returns, and its memory is the caller's again; others may still need the result.
TEST_F(LaneTest, AResultThatIsNotSettledIsCopied) {
  constexpr std::size_t kCount = 100'000;
  int suspicions = 0;
  Lane lane("lane", {[](auto, const auto&) {},
                     [&](auto, const auto&, const auto&) { ++suspicions; }, [] {}});
  std::vector<std::int32_t> given;
  const auto zero_copy = [&](std::shared_ptr<LaneView> view, Status settles) {
    view->backend = std::make_unique<ZeroCopyBackend>(std::move(settles), given);
    return view;
  };
  lane.install(zero_copy(view(7), Status(Code::kPeerLost, "the peer is gone", 1)));
  std::vector<std::int32_t> data(kCount);
  AllreduceOperation operation({elastic::view(std::span<const std::int32_t>(data))},
                               {elastic::view(std::span(data))}, ReduceOp::kSum);
  EXPECT_TRUE(lane.run(operation, Milliseconds(0)).ok());
  EXPECT_EQ(lane.position(), 1U);
  EXPECT_EQ(suspicions, 1);
  const std::vector<std::int32_t> result = data;
  EXPECT_EQ(result.back(), static_cast<std::int32_t>(kCount));
  std::fill(data.begin(), data.end(), -1);

  lane.freeze();
  lane.install(as_sender(zero_copy(view(8), {})));
  Lane::Ownership ownership = lane.acquire(Milliseconds(10'000)).value();
  EXPECT_TRUE(lane.resume(ownership, nullptr).status.ok());
  EXPECT_EQ(given, result);
}

/// An allreduce of a zero-copy tensor takes a few microseconds, so allocations count.
TEST_F(LaneTest, AZeroCopyOperationAllocatesNothingAfterItsFirstRun) {
  Lane lane("lane", {[](auto, const auto&) {}, [](auto, const auto&, const auto&) {}, [] {}});
  std::vector<std::int32_t> given;
  const auto zero_copy = view(7);
  zero_copy->backend = std::make_unique<ZeroCopyBackend>(Status(), given);
  lane.install(zero_copy);
  std::vector<std::int32_t> data(1000);
  AllreduceOperation operation({elastic::view(std::span<const std::int32_t>(data))},
                               {elastic::view(std::span(data))}, ReduceOp::kSum);
  EXPECT_TRUE(lane.run(operation, Milliseconds(0)).ok());
  const std::size_t before = testing::allocations();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(lane.run(operation, Milliseconds(0)).ok());
  EXPECT_EQ(testing::allocations(), before);
}

}  // namespace
}  // namespace elastic::coordinator
