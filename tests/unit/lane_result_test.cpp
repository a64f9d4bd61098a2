// Which call a result is delivered to, and what a call that finds no view leaves behind.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/backend/native/native_backend.hpp"
#include "coordinator/coordinator.hpp"
#include "coordinator/lane.hpp"

namespace elastic::coordinator {
namespace {

using collectives::Backend;
using collectives::Call;
using collectives::Payload;

constexpr Milliseconds kNow{0};
constexpr Milliseconds kShort{20};
/// Longer than any test lasts: for what comes.
constexpr Milliseconds kLong{20'000};

/// Interrupts every call, and hands over four floats as the result of `given`.
class InterruptedBackend final : public Backend {
 public:
  InterruptedBackend(transport::Fingerprint given, int& runs) : given_(given), runs_(runs) {}
  Status run(std::uint64_t /*position*/, const Call& /*call*/, Payload& /*payload*/) override {
    ++runs_;
    return Status(Code::kAborted, "the view changes");
  }
  bool takes(const collectives::SmallCall& /*call*/) const override { return true; }
  Status run_small(std::uint64_t /*position*/, const collectives::SmallCall& /*call*/,
                   collectives::Payload& /*payload*/) override {
    return Status(Code::kAborted, "the view changes");
  }
  Status hand_over(std::uint64_t /*position*/, const HandoverPairs& /*pairs*/,
                   Parcel& parcel) override {
    const std::vector<float> values(4, 111);
    parcel.payload.data.resize(4 * sizeof(float));
    std::memcpy(parcel.payload.data.data(), values.data(), parcel.payload.data.size());
    parcel.fingerprint = transport::performed_by(name(), given_);
    return {};
  }
  void abort() noexcept override {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "native"; }

 private:
  const transport::Fingerprint given_;
  int& runs_;
};

/// An allreduce in place of some floats.
struct Floats {
  explicit Floats(std::size_t count, ReduceOp redop = ReduceOp::kSum)
      : values(count, 5), op(redop) {}
  AllreduceOperation operation() {
    const TensorView tensor = elastic::view(std::span(values));
    return AllreduceOperation({tensor}, {tensor}, op);
  }
  transport::Fingerprint fingerprint() const {
    return allreduce_fingerprint(DType::kF32, op, values.size());
  }
  bool untouched() const { return values == std::vector<float>(values.size(), 5); }

  std::vector<float> values;
  ReduceOp op;
};

class LaneResultTest : public ::testing::Test {
 protected:
  static std::shared_ptr<LaneView> empty_view(std::uint64_t generation, int size) {
    auto members = std::make_shared<Members>();
    members->generation = generation;
    for (int rank = 0; rank < size; ++rank) {
      members->incarnations.push_back(std::to_string(rank));
      members->synced.push_back(true);
    }
    members->ids = std::make_shared<std::vector<WorkerId>>(static_cast<std::size_t>(size));
    auto made = std::make_shared<LaneView>();
    made->members = std::move(members);
    made->mesh = std::make_shared<transport::Mesh>(
        0, std::vector<transport::LinkPtr>(static_cast<std::size_t>(size)));
    return made;
  }
  std::shared_ptr<LaneView> interrupted(std::uint64_t generation,
                                        transport::Fingerprint given = {}) {
    auto made = empty_view(generation, 2);
    made->backend = std::make_unique<InterruptedBackend>(given, runs_);
    return made;
  }
  static std::shared_ptr<LaneView> taking(std::shared_ptr<LaneView> view) {
    view->position = 1;
    view->handover = {{1}, {0}};
    view->holders = {1};
    return view;
  }
  /// A view of this worker alone.
  static std::shared_ptr<LaneView> alone(std::uint64_t generation) {
    auto made = empty_view(generation, 1);
    made->backend = collectives::make_native_backend(generation, made->mesh);
    return made;
  }
  void begin(AllreduceOperation& operation) {
    Lane::Ownership ownership = lane_.acquire(kLong).value();
    EXPECT_FALSE(lane_.attempt(ownership, operation).final);
  }

  int runs_ = 0;
  std::vector<Status> left_;
  Lane lane_{"lane",
             {[](auto, const auto&) {}, [](auto, const auto&, const auto&) {}, [] {},
              [this](const Status& why) { left_.push_back(why); }}};
};

/// Others may have its result: the next call must not be given it.
TEST_F(LaneResultTest, ACallThatHadBegunAndFindsNoViewLeavesTheJob) {
  Floats first(4);
  Floats second(8, ReduceOp::kMax);
  AllreduceOperation one = first.operation();
  AllreduceOperation two = second.operation();
  lane_.install(interrupted(7));
  const Status timeout = lane_.run(one, kShort).status();
  EXPECT_EQ(timeout.code(), Code::kTimeout);
  EXPECT_NE(timeout.message().find("has left the job"), std::string::npos) << timeout.message();
  EXPECT_EQ(left_.size(), 1U);

  lane_.freeze();
  lane_.install(taking(interrupted(8, first.fingerprint())));
  const Status later = lane_.run(two, kShort).status();
  EXPECT_EQ(later.code(), Code::kTimeout);
  EXPECT_EQ(later.message(), timeout.message());
  EXPECT_EQ(runs_, 1);
  EXPECT_TRUE(second.untouched());
}

TEST_F(LaneResultTest, ASmallCallThatHadBegunLeavesTheJobAsWell) {
  Floats floats(4);
  lane_.install(interrupted(7));
  const Lane::Turn turn = lane_.take_turn();
  const SmallAttempt small{.call = {DType::kF32, ReduceOp::kSum,
                                    std::as_bytes(std::span(floats.values)), floats.fingerprint()}};
  EXPECT_FALSE(lane_.run_small(turn, small));
  AllreduceOperation operation = floats.operation();
  EXPECT_EQ(lane_.run(turn, operation, kShort).status().code(), Code::kTimeout);
  EXPECT_EQ(left_.size(), 1U);
  EXPECT_TRUE(floats.untouched());
}

/// It has begun, though not as an operation: no new root takes the place of the one that died with
/// the result given to the other.
TEST_F(LaneResultTest, ASmallBroadcastIsGivenTheResultOfARootThatIsGone) {
  Floats floats(4);
  const TensorView tensor = elastic::view(std::span(floats.values));
  std::shared_ptr<LaneView> first = interrupted(7);
  auto members = std::make_shared<Members>(*first->members);
  members->incarnations[1] = "the root";
  first->members = members;
  const CallRoot root(1, *members);
  lane_.install(first);
  const Lane::Turn turn = lane_.take_turn();
  const transport::Fingerprint called =
      fingerprint(collectives::Kind::kBroadcast, DType::kF32, ReduceOp::kSum, 4, 1);
  const SmallAttempt small{.call = {.dtype = DType::kF32,
                                    .input = {},
                                    .fingerprint = called,
                                    .kind = collectives::Kind::kBroadcast,
                                    .root = 1},
                           .generation = 7};
  EXPECT_FALSE(lane_.run_small(turn, small));
  lane_.freeze();
  lane_.install(taking(interrupted(8, called)));
  BroadcastOperation operation(tensor, root);
  const Status given = lane_.run(turn, operation, kLong).status();
  EXPECT_TRUE(given.ok()) << given.message();
  EXPECT_EQ(floats.values, std::vector<float>(4, 111));
  EXPECT_TRUE(left_.empty());
}

TEST_F(LaneResultTest, ACallThatHadNotBegunLeavesNothingBehind) {
  Floats first(4);
  Floats second(8, ReduceOp::kMax);
  AllreduceOperation one = first.operation();
  AllreduceOperation two = second.operation();
  EXPECT_EQ(lane_.run(one, kShort).status().code(), Code::kTimeout);
  lane_.install(alone(7));
  EXPECT_TRUE(lane_.run(two, kNow).ok());
  EXPECT_EQ(lane_.position(), 1U);
  EXPECT_TRUE(left_.empty());
}

/// Only a mistake in the library can lead to this.
TEST_F(LaneResultTest, AnotherCallIsNotGivenTheResult) {
  Floats first(4);
  Floats second(8, ReduceOp::kMax);
  AllreduceOperation one = first.operation();
  AllreduceOperation two = second.operation();
  lane_.install(interrupted(7));
  begin(one);
  lane_.freeze();
  lane_.install(taking(interrupted(8, first.fingerprint())));
  const Status wrong = lane_.run(two, kLong).status();
  EXPECT_EQ(wrong.code(), Code::kInternal);
  EXPECT_NE(wrong.message().find("allreduce of 4 f32, sum"), std::string::npos) << wrong.message();
  EXPECT_NE(wrong.message().find("allreduce of 8 f32, max"), std::string::npos) << wrong.message();
  EXPECT_TRUE(second.untouched());
  EXPECT_EQ(left_.size(), 1U);
  EXPECT_EQ(lane_.run(two, kNow).status().code(), Code::kInternal);
}

TEST_F(LaneResultTest, ACallIsNotGivenTheResultOfAnother) {
  Floats floats(4);
  AllreduceOperation operation = floats.operation();
  lane_.install(interrupted(7));
  begin(operation);
  lane_.freeze();
  lane_.install(taking(interrupted(8, Floats(4, ReduceOp::kMax).fingerprint())));
  EXPECT_EQ(lane_.run(operation, kLong).status().code(), Code::kInternal);
  EXPECT_TRUE(floats.untouched());
  EXPECT_EQ(left_.size(), 1U);
}

TEST_F(LaneResultTest, ItsOwnResultIsDelivered) {
  Floats floats(4);
  AllreduceOperation operation = floats.operation();
  lane_.install(interrupted(7));
  begin(operation);
  lane_.freeze();
  lane_.install(taking(interrupted(8, floats.fingerprint())));
  EXPECT_TRUE(lane_.run(operation, kLong).ok());
  EXPECT_EQ(floats.values, std::vector<float>(4, 111));
  EXPECT_TRUE(left_.empty());
}

Result<Contributors> outcome_of(const std::shared_ptr<detail::WorkState>& work) {
  work->wait();
  return work->outcome();
}

Coordinator::Options named_options() {
  Coordinator::Options options;
  options.view_timeout = kShort;
  return options;
}

TEST_F(LaneResultTest, NamedTensorsThatFindNoViewFailAndTheNextOnesDoNot) {
  Coordinator coordinator(lane_, named_options());
  std::vector<float> values(4, 1);
  const auto submit = [&] {
    auto work = coordinator.submit("name", {elastic::view(std::span(values))}, ReduceOp::kSum);
    return std::move(work).value();
  };
  EXPECT_EQ(outcome_of(submit()).status().code(), Code::kTimeout);
  EXPECT_TRUE(left_.empty());
  lane_.install(alone(7));
  EXPECT_TRUE(outcome_of(submit()).ok());
  lane_.close(Status(Code::kNotInitialized, "the test is over"));
}

/// So that calls which are counted can be counted back.
TEST_F(LaneResultTest, CallsThatFindNoViewAreWithdrawn) {
  Coordinator coordinator(lane_, named_options());
  std::vector<std::string> withdrawn;
  std::vector<std::shared_ptr<detail::WorkState>> works;
  for (const std::string name : {"first", "second", "third"}) {
    coordinator::NamedCall call;
    call.request = {name, kMessageRequest, ReduceOp::kSum, {{DType::kU8, 0}}};
    call.withdrawn = [&withdrawn, name] { withdrawn.push_back(name); };
    works.push_back(coordinator.submit(std::move(call)).value());
  }
  for (const auto& work : works) {
    EXPECT_EQ(outcome_of(work).status().code(), Code::kTimeout);
  }
  std::ranges::sort(withdrawn);
  EXPECT_EQ(withdrawn, (std::vector<std::string>{"first", "second", "third"}));
  lane_.close(Status(Code::kNotInitialized, "the test is over"));
}

TEST_F(LaneResultTest, ANamedTensorThatHadBegunAndFindsNoViewLeavesTheJob) {
  Coordinator coordinator(lane_, named_options());
  auto view = interrupted(7);
  // One rank is alone, so that the order needs no other rank.
  auto members = *view->members;
  members.incarnations.resize(1);
  view->members = std::make_shared<Members>(std::move(members));
  view->mesh = std::make_shared<transport::Mesh>(0, std::vector<transport::LinkPtr>(1));
  lane_.install(view);
  std::vector<float> values(4, 1);
  const auto submit = [&] {
    return coordinator.submit("name", {elastic::view(std::span(values))}, ReduceOp::kSum);
  };
  EXPECT_EQ(outcome_of(submit().value()).status().code(), Code::kTimeout);
  EXPECT_EQ(left_.size(), 1U);
  EXPECT_EQ(submit().status().code(), Code::kTimeout);
}

/// An unnamed call can have made this worker leave.
TEST_F(LaneResultTest, ANamedTensorFailsAtOnceWhenThisWorkerHasLeft) {
  Coordinator::Options patient = named_options();
  patient.view_timeout = kLong * 100;
  Coordinator coordinator(lane_, patient);
  std::vector<float> values(4, 1);
  const auto work = coordinator.submit("name", {elastic::view(std::span(values))}, ReduceOp::kSum);
  (void)lane_.leave_after(Status(Code::kTimeout, "no new view"));
  const Status told = outcome_of(work.value()).status();
  EXPECT_EQ(told.code(), Code::kTimeout);
  EXPECT_NE(told.message().find("has left the job"), std::string::npos) << told.message();
}

}  // namespace
}  // namespace elastic::coordinator
