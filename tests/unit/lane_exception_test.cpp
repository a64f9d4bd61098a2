// Operations that throw or cannot be started: the worker leaves the view, so no peer waits for it.
#include <cstdint>
#include <fcntl.h>
#include <future>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "coordinator/coordinator.hpp"
#include "coordinator/lane.hpp"
#include "coordinator/wake_up.hpp"

namespace elastic::coordinator {
namespace {

using collectives::Backend;
using collectives::Call;
using collectives::Payload;
using ::testing::HasSubstr;

enum class Place : std::uint8_t { kNowhere, kPack, kRun, kUnpack, kHandOver, kSettleError };

/// The backend of a view of one rank, or of two if a result is handed over.
class ThrowingBackend final : public Backend {
 public:
  explicit ThrowingBackend(Place place) : place_(place) {}
  Status run(std::uint64_t /*position*/, const Call& /*call*/, Payload& /*payload*/) override {
    if (place_ == Place::kRun) throw std::bad_alloc();
    return {};
  }
  bool takes(const collectives::SmallCall& /*call*/) const override {
    return place_ == Place::kSettleError;
  }
  Status run_small(std::uint64_t /*position*/, const collectives::SmallCall& /*call*/,
                   collectives::Payload& /*payload*/) override {
    return Status(Code::kMismatch, "the calls differ");
  }
  Status settle_error(std::uint64_t /*position*/, const std::vector<int>& /*ranks*/) override {
    throw std::bad_alloc();
  }
  Status hand_over(std::uint64_t /*position*/, const HandoverPairs& /*pairs*/,
                   Parcel& /*parcel*/) override {
    if (place_ == Place::kHandOver) throw std::bad_alloc();
    return {};
  }
  void abort() noexcept override {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* name() const override { return "throwing"; }

 private:
  const Place place_;
};

class ThrowingOperation final : public BarrierOperation {
 public:
  explicit ThrowingOperation(Place place) : place_(place) {}
  void pack(const Members& members, Payload& payload) override {
    if (place_ == Place::kPack) throw std::bad_alloc();
    BarrierOperation::pack(members, payload);
  }
  void unpack(const Members& /*members*/, const Payload& /*payload*/) override {
    if (place_ == Place::kUnpack) throw std::bad_alloc();
  }

 private:
  const Place place_;
};

std::shared_ptr<LaneView> view_that_throws(Place place) {
  auto members = std::make_shared<Members>();
  members->generation = 1;
  members->incarnations = {"me"};
  members->synced = {true};
  members->ids = std::make_shared<std::vector<WorkerId>>(std::vector<WorkerId>{1});
  auto made = std::make_shared<LaneView>();
  made->members = std::move(members);
  made->mesh = std::make_shared<transport::Mesh>(0, std::vector<transport::LinkPtr>(1));
  made->backend = std::make_unique<ThrowingBackend>(place);
  if (place == Place::kHandOver) {
    made->position = 1;
    made->handover = {{0}, {1}};
  }
  return made;
}

class LeavingTest : public ::testing::Test {
 protected:
  Lane::Callbacks callbacks() {
    Lane::Callbacks result;
    result.on_quiesced = [](auto, const auto&) {};
    result.on_suspect = [](auto, const auto&, const auto&) {};
    result.on_leave = [this](const Status& why) { left_.set_value(why.message()); };
    return result;
  }
  std::promise<std::string> left_;
};

class ExceptionTest : public LeavingTest, public ::testing::WithParamInterface<Place> {};

TEST_P(ExceptionTest, MakesTheWorkerLeave) {
  Lane lane("lane", callbacks());
  ThrowingOperation operation(GetParam());
  const Lane::Turn turn = lane.take_turn();
  lane.install(view_that_throws(GetParam()));
  // A hand-over is made by a thread of the lane's own, where an exception would end the process.
  if (GetParam() != Place::kHandOver) {
    EXPECT_THROW((void)lane.run(turn, operation, Milliseconds(1000)), std::bad_alloc);
  }
  EXPECT_THAT(left_.get_future().get(), HasSubstr("left the job"));
  const auto after = lane.run(turn, operation, Milliseconds(1000));
  EXPECT_EQ(after.status().code(), Code::kInternal);
  EXPECT_THAT(after.status().message(), HasSubstr("lack of memory"));
}

INSTANTIATE_TEST_SUITE_P(Places, ExceptionTest,
                         ::testing::Values(Place::kPack, Place::kRun, Place::kUnpack,
                                           Place::kHandOver));

/// A small allreduce ends in an error, which the ranks then wait for each other to have.
TEST_F(LeavingTest, AnExceptionAfterTheErrorOfASmallCallMakesTheWorkerLeave) {
  Lane lane("lane", callbacks());
  lane.install(view_that_throws(Place::kSettleError));
  const Lane::Turn turn = lane.take_turn();
  std::vector<float> data(4);
  const SmallAttempt small{
      .call = {DType::kF32, ReduceOp::kSum, std::as_bytes(std::span<const float>(data)),
               allreduce_fingerprint(DType::kF32, ReduceOp::kSum, data.size())}};
  EXPECT_THROW((void)lane.run_small(turn, small), std::bad_alloc);
  EXPECT_EQ(lane.closed().code(), Code::kInternal);
  EXPECT_THAT(lane.closed().message(), HasSubstr("left the job"));
}

/// The thread for named operations has no caller that could catch the exception.
TEST_F(LeavingTest, AnExceptionInANamedOperationIsTheErrorOfTheWork) {
  Lane lane("lane", callbacks());
  {
    Coordinator coordinator(lane, Coordinator::Options());
    ASSERT_TRUE(coordinator.status().ok());
    lane.install(view_that_throws(Place::kRun));
    std::vector<float> data(4);
    const auto work =
        coordinator.submit("name", {{data.data(), data.size(), DType::kF32, {}}}, ReduceOp::kSum);
    ASSERT_TRUE(work.ok());
    work.value()->wait();
    EXPECT_EQ(work.value()->outcome().status().code(), Code::kInternal);
    EXPECT_THAT(left_.get_future().get(), HasSubstr("left the job"));
    coordinator.drain();
    const auto later =
        coordinator.submit("later", {{data.data(), data.size(), DType::kF32, {}}}, ReduceOp::kSum);
    EXPECT_EQ(later.status().code(), Code::kInternal);
  }
}

/// While it lives, this process can open only so many more descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(lowest);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(lowest) + more;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

/// Otherwise it would sleep for ever, and named operations with it.
TEST(WakeUpTest, SaysWhichLimitKeepsItFromWaking) {
  constexpr rlim_t kNeeded = 3;
  for (rlim_t more = 0; more < kNeeded; ++more) {
    const FewDescriptors few(more);
    const WakeUp wake_up;
    EXPECT_EQ(wake_up.status().code(), Code::kUnavailable) << more;
    EXPECT_THAT(wake_up.status().message(), HasSubstr("ulimit -n"));
    Lane lane("lane", {});
    EXPECT_FALSE(Coordinator(lane, Coordinator::Options()).status().ok());
  }
  const FewDescriptors enough(kNeeded);
  EXPECT_TRUE(WakeUp().status().ok());
}

}  // namespace
}  // namespace elastic::coordinator
