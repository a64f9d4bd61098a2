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

namespace elastic::coordinator {
namespace {

using collectives::Backend;
using collectives::Call;
using collectives::Kind;
using collectives::Payload;

/// Answers every call as it was told, and remembers what it was asked. A hand-over lasts until it
/// is aborted.
class ScriptedBackend final : public Backend {
 public:
  ScriptedBackend(Status answer, std::vector<Call>& calls)
      : answer_(std::move(answer)), calls_(calls) {}

  Status run(std::uint64_t /*position*/, const Call& call, Payload& /*payload*/) override {
    calls_.push_back(call);
    return answer_;
  }
  Status hand_over(std::uint64_t /*position*/, const Handover& /*handover*/,
                   Parcel& /*parcel*/) override {
    handing_over.set_value();
    aborted_.get_future().wait();
    return Status(Code::kAborted, "the view changes");
  }
  void abort() noexcept override { aborted_.set_value(); }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "scripted"; }

  std::promise<void> handing_over;

 private:
  const Status answer_;
  std::vector<Call>& calls_;
  std::promise<void> aborted_;
};

/// A lane of rank 0 of two, whose backend is scripted.
class LaneTest : public testing::Test {
 protected:
  static Members members(std::uint64_t generation) {
    Members two;
    two.generation = generation;
    two.incarnations = {"me", "other"};
    two.synced = {true, true};
    two.ids = std::make_shared<std::vector<WorkerId>>(std::vector<WorkerId>{1, 2});
    return two;
  }
  std::shared_ptr<LaneView> view(std::uint64_t generation, Status answer = {}) {
    auto made = std::make_shared<LaneView>();
    made->members = std::make_shared<Members>(members(generation));
    made->mesh = std::make_shared<transport::Mesh>(0, std::vector<transport::LinkPtr>(2));
    auto backend = std::make_unique<ScriptedBackend>(std::move(answer), calls_);
    backend_ = backend.get();
    made->backend = std::move(backend);
    return made;
  }
  std::shared_ptr<LaneView> losing(std::shared_ptr<LaneView> view) {
    view->lost = true;
    return view;
  }
  std::shared_ptr<LaneView> giving(std::shared_ptr<LaneView> view) {
    view->position = 1;
    view->handover = {{0}, {1}};
    return view;
  }

  std::vector<Call> calls_;
  ScriptedBackend* backend_ = nullptr;  // of the view made last
};

TEST_F(LaneTest, ALostBroadcastEndsOnlyWhenAllHaveMet) {
  std::vector<std::string> needs;
  Lane lane("lane",
            {[&](std::uint64_t /*position*/, const std::string& its) { needs.push_back(its); },
             [](auto, const auto&, const auto&) {}, [] {}});
  float data = 0;
  BroadcastOperation broadcast({&data, 1, DType::kF32}, 1, members(6));

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
  BroadcastOperation broadcast({&data, 1, DType::kF32}, 0, before);

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

/// The control thread, which installs views, must not wait for a repair that is on its way out.
TEST_F(LaneTest, InstallDoesNotWaitForAnEarlierRepair) {
  std::promise<void> quiet;
  std::promise<void> installed;
  Lane lane("lane", {[&](std::uint64_t /*position*/, const std::string& /*needs*/) {
                       quiet.set_value();
                       installed.get_future().wait();
                     },
                     [](auto, const auto&, const auto&) {}, [] {}});
  lane.install(giving(view(7)));
  backend_->handing_over.get_future().wait();
  lane.freeze();
  quiet.get_future().wait();  // the repair has released the lane, and is stuck in its callback
  lane.install(view(8));
  installed.set_value();
}

/// A part of a reduce_scatter, on a device.
class PartOnDevice final : public collectives::DeviceResult {
 public:
  Status unpack() override { return {}; }
  Status gather(collectives::Buffer& /*data*/) override { return {}; }
};

/// Fails when this rank has its part, and hands over another's.
class PartBackend final : public Backend {
 public:
  explicit PartBackend(std::shared_ptr<PartOnDevice> part) : part_(std::move(part)) {}
  Status run(std::uint64_t /*position*/, const Call& /*call*/, Payload& payload) override {
    payload.device_result = part_;
    payload.in_hand = true;
    return Status(Code::kPeerLost, "before all have said that they have theirs", 1);
  }
  Status hand_over(std::uint64_t /*position*/, const Handover& /*handover*/,
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
    result = payload.device_result;
    bytes = payload.data.size();
  }

  std::shared_ptr<collectives::DeviceResult> result;
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

/// Writes 1, 2, 3, ... to direct tensors. Settles as told, and hands over the result that it has.
class DirectBackend final : public Backend {
 public:
  DirectBackend(Status settles, std::vector<std::int32_t>& given)
      : settles_(std::move(settles)), given_(given) {}

  Status run(std::uint64_t /*position*/, const Call& /*call*/, Payload& payload) override {
    std::int32_t next = 1;
    for (const collectives::DirectTensor& tensor : payload.direct) {
      auto* const values = reinterpret_cast<std::int32_t*>(tensor.output);
      for (std::size_t i = 0; i < tensor.count; ++i) values[i] = next++;
    }
    return {};
  }
  plan::AllreduceLimits allreduce_limits() const override { return {.direct_from = 1}; }
  Status settle() override { return settles_; }
  Status hand_over(std::uint64_t /*position*/, const Handover& /*handover*/,
                   Parcel& parcel) override {
    parcel.payload.gather();
    given_.resize(parcel.payload.data.size() / sizeof(std::int32_t));
    std::memcpy(given_.data(), parcel.payload.data.data(), parcel.payload.data.size());
    return {};
  }
  void abort() noexcept override {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "direct"; }

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
  const auto direct = [&](std::shared_ptr<LaneView> view, Status settles) {
    view->backend = std::make_unique<DirectBackend>(std::move(settles), given);
    return view;
  };
  lane.install(direct(view(7), Status(Code::kPeerLost, "the peer is gone", 1)));
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
  lane.install(giving(direct(view(8), {})));
  Lane::Ownership ownership = lane.acquire(Milliseconds(10'000)).value();
  EXPECT_TRUE(lane.resume(ownership, nullptr).status.ok());
  EXPECT_EQ(given, result);
}

/// Ends every call in an error that all ranks share.
class ErringBackend final : public Backend {
 public:
  struct Log {
    int runs = 0;
    std::vector<std::string> given;
    std::vector<std::vector<int>> settled_with;
  };
  static Status mismatch() { return Status(Code::kMismatch, "the ranks differ"); }

  ErringBackend(Status runs, Status settles, Log& log)
      : runs_(std::move(runs)), settles_(std::move(settles)), log_(log) {}
  Status run(std::uint64_t /*position*/, const Call& /*call*/, Payload& /*payload*/) override {
    ++log_.runs;
    return runs_;
  }
  plan::AllreduceLimits allreduce_limits() const override {
    return {.eager_below = plan::AllreduceLimits::kNever};
  }
  Status run_small(std::uint64_t /*position*/, const collectives::SmallCall& /*call*/,
                   std::byte* /*result*/) override {
    ++log_.runs;
    return runs_;
  }
  Status settle_error(std::uint64_t position, const std::vector<int>& ranks) override {
    EXPECT_EQ(position, 0U);
    log_.settled_with.push_back(ranks);
    return settles_;
  }
  Status hand_over(std::uint64_t /*position*/, const Handover& handover, Parcel& parcel) override {
    if (handover.holders.front() == 0) {
      log_.given.push_back(parcel.error);
    } else {
      parcel.error = static_cast<char>(Code::kMismatch) + std::string("the ranks differ");
    }
    return {};
  }
  void abort() noexcept override {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "erring"; }

 private:
  const Status runs_;
  const Status settles_;
  Log& log_;
};

class SharedErrorTest : public LaneTest {
 protected:
  std::shared_ptr<LaneView> erring(std::shared_ptr<LaneView> view, Status runs, Status settles) {
    view->backend = std::make_unique<ErringBackend>(std::move(runs), std::move(settles), log_);
    return view;
  }
  /// All have completed the operation.
  static std::shared_ptr<LaneView> complete(std::shared_ptr<LaneView> view) {
    view->position = 1;
    return view;
  }
  static std::shared_ptr<LaneView> taking(std::shared_ptr<LaneView> view) {
    view->position = 1;
    view->handover = {{1}, {0}};
    view->holders = {1};
    return view;
  }
  void expect_mismatch(const Status& status) {
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_EQ(status.message(), "the ranks differ");
    EXPECT_EQ(lane_.position(), 1U);
  }

  const Status aborted_{Code::kAborted, "the view changes"};
  ErringBackend::Log log_;
  BarrierOperation operation_;
  Lane lane_{"lane", {[](auto, const auto&) {}, [](auto, const auto&, const auto&) {}, [] {}}};
};

TEST_F(SharedErrorTest, IsReturnedWhenAllRanksHaveIt) {
  lane_.install(erring(view(7), ErringBackend::mismatch(), {}));
  expect_mismatch(lane_.run(operation_, Milliseconds(0)).status());
  EXPECT_EQ(log_.settled_with, (std::vector<std::vector<int>>{{0, 1}}));
}

/// Another rank may lack it, and would replay the operation without this one.
TEST_F(SharedErrorTest, StaysTheResultThroughAViewChange) {
  lane_.install(erring(view(7), ErringBackend::mismatch(), aborted_));
  {
    Lane::Ownership ownership = lane_.acquire(Milliseconds(0)).value();
    EXPECT_FALSE(lane_.attempt(ownership, operation_).final);
  }
  lane_.freeze();
  auto next = erring(giving(view(8)), ErringBackend::mismatch(), {});
  next->holders = {0};
  auto three = members(8);
  three.incarnations.emplace_back("joiner");
  next->members = std::make_shared<Members>(std::move(three));
  lane_.install(next);
  expect_mismatch(lane_.run(operation_, Milliseconds(10'000)).status());
  EXPECT_EQ(log_.runs, 1);
  ASSERT_EQ(log_.given.size(), 1U);
  EXPECT_EQ(log_.given.front().substr(1), "the ranks differ");
  // A worker that joins in that view does not take part in the call.
  EXPECT_EQ(log_.settled_with, (std::vector<std::vector<int>>{{0, 1}, {0, 1}}));
}

TEST_F(SharedErrorTest, IsReturnedInAViewInWhichNobodyLacksIt) {
  lane_.install(erring(view(7), ErringBackend::mismatch(), aborted_));
  {
    Lane::Ownership ownership = lane_.acquire(Milliseconds(0)).value();
    EXPECT_FALSE(lane_.attempt(ownership, operation_).final);
  }
  lane_.freeze();
  lane_.install(complete(erring(view(8), ErringBackend::mismatch(), aborted_)));
  expect_mismatch(lane_.run(operation_, Milliseconds(0)).status());
  EXPECT_EQ(log_.runs, 1);
  EXPECT_EQ(log_.settled_with.size(), 1U);
}

TEST_F(SharedErrorTest, ThatWasTakenIsSettledAsWell) {
  lane_.install(erring(view(7), aborted_, {}));
  {
    Lane::Ownership ownership = lane_.acquire(Milliseconds(0)).value();
    EXPECT_FALSE(lane_.attempt(ownership, operation_).final);
  }
  lane_.freeze();
  lane_.install(taking(erring(view(8), {}, aborted_)));
  {
    Lane::Ownership ownership = lane_.acquire(Milliseconds(10'000)).value();
    EXPECT_FALSE(lane_.resume(ownership, &operation_).final);
  }
  lane_.freeze();
  lane_.install(complete(erring(view(9), {}, {})));
  expect_mismatch(lane_.run(operation_, Milliseconds(0)).status());
  EXPECT_EQ(log_.runs, 1);
  EXPECT_EQ(log_.settled_with, (std::vector<std::vector<int>>{{0, 1}}));
}

TEST_F(SharedErrorTest, OfASmallCallIsSettledByRun) {
  lane_.install(erring(view(7), ErringBackend::mismatch(), aborted_));
  float value = 1;
  const TensorView tensor{&value, 1, DType::kF32, {}};
  const collectives::SmallCall call{DType::kF32, ReduceOp::kSum,
                                    std::as_bytes(std::span(&value, 1)),
                                    allreduce_fingerprint(DType::kF32, ReduceOp::kSum, 1)};
  const Lane::Turn turn = lane_.take_turn();
  EXPECT_FALSE(lane_.run_small(turn, call, reinterpret_cast<std::byte*>(&value)).has_value());
  lane_.freeze();
  lane_.install(erring(giving(view(8)), ErringBackend::mismatch(), {}));
  AllreduceOperation operation({tensor}, {tensor}, ReduceOp::kSum);
  expect_mismatch(lane_.run(turn, operation, Milliseconds(10'000)).status());
  EXPECT_EQ(log_.runs, 1);
  EXPECT_EQ(log_.given.size(), 1U);
  EXPECT_EQ(log_.settled_with.size(), 2U);
  EXPECT_EQ(value, 1);
}

/// The choice of direct tensors depends on the view: each attempt makes it again from all tensors.
TEST(AllreduceOperationTest, IsSplitAnewForEachView) {
  std::vector<std::int32_t> small(10);
  std::vector<std::int32_t> middle(100);
  std::vector<std::int32_t> large(1000);
  const std::vector<TensorView> tensors{elastic::view(std::span(middle)),
                                        elastic::view(std::span(small)),
                                        elastic::view(std::span(large))};
  AllreduceOperation operation({tensors.begin(), tensors.end()}, tensors, ReduceOp::kSum);
  const Members members;
  const auto split = [&](std::size_t direct_from) {
    operation.choose_ways({.direct_from = direct_from});
    Payload payload;
    operation.pack(members, payload);
    std::vector<const void*> direct;
    for (const auto& tensor : payload.direct) direct.push_back(tensor.input);
    return std::pair(collectives::extent(operation.call(members).sections), direct);
  };
  using Direct = std::vector<const void*>;
  EXPECT_EQ(split(400), std::pair(std::size_t{40}, Direct{middle.data(), large.data()}));
  EXPECT_EQ(split(4000), std::pair(std::size_t{440}, Direct{large.data()}));
  EXPECT_EQ(split(plan::AllreduceLimits::kNever), std::pair(std::size_t{4440}, Direct{}));
  EXPECT_EQ(split(400), std::pair(std::size_t{40}, Direct{middle.data(), large.data()}));
}

}  // namespace
}  // namespace elastic::coordinator
