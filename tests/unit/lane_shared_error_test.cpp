// Operations of a lane that end in an error that all ranks share.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "lane_fixture.hpp"

namespace elastic::coordinator {
namespace {

using collectives::Backend;
using collectives::Call;
using collectives::Payload;

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
  bool takes(const collectives::SmallCall& /*call*/) const override { return true; }
  Status run_small(std::uint64_t /*position*/, const collectives::SmallCall& /*call*/,
                   collectives::Payload& /*payload*/) override {
    ++log_.runs;
    return runs_;
  }
  Status settle_error(std::uint64_t position, const std::vector<int>& ranks) override {
    EXPECT_EQ(position, 0U);
    log_.settled_with.push_back(ranks);
    return settles_;
  }
  Status hand_over(std::uint64_t /*position*/, const HandoverPairs& pairs,
                   Parcel& parcel) override {
    if (pairs.senders.front() == 0) {
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
  auto next = erring(as_sender(view(8)), ErringBackend::mismatch(), {});
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

TEST_F(SharedErrorTest, IsReturnedInAViewInWhichNoMemberLacksIt) {
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
  const SmallAttempt small{.call = {DType::kF32, ReduceOp::kSum,
                                    std::as_bytes(std::span(&value, 1)),
                                    allreduce_fingerprint(DType::kF32, ReduceOp::kSum, 1)}};
  const Lane::Turn turn = lane_.take_turn();
  EXPECT_FALSE(lane_.run_small(turn, small).has_value());
  lane_.freeze();
  lane_.install(erring(as_sender(view(8)), ErringBackend::mismatch(), {}));
  AllreduceOperation operation({tensor}, {tensor}, ReduceOp::kSum);
  expect_mismatch(lane_.run(turn, operation, Milliseconds(10'000)).status());
  EXPECT_EQ(log_.runs, 1);
  EXPECT_EQ(log_.given.size(), 1U);
  EXPECT_EQ(log_.settled_with.size(), 2U);
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace elastic::coordinator
