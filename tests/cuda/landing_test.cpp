// Results on their way to tensors on a device, for which no thread of the library waits.
#include "collectives/device/landing.hpp"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/device/devices.hpp"
#include "coordinator/work_state.hpp"
#include "cuda/driver_calls.hpp"

namespace elastic::device {
namespace {

using testing::Gpu;
using testing::GpuArray;
using testing::GpuStream;
using testing::PinnedArray;

const Contributors kOne{std::make_shared<std::vector<WorkerId>>(1), 1};

/// One tensor, whose result comes over `way_` as soon as `gate_` is open.
class LandingTest : public ::testing::Test {
 protected:
  LandingTest()
      : gpu_(0, CUDA_STAND_IN), way_(gpu_), devices_(CUDA_STAND_IN), array_(gpu_, {0, 0, 0}) {}
  ~LandingTest() override {
    open();
    if (landing_) (void)landing_->wait();
    ::unsetenv("CUDA_STAND_IN_FAIL");
  }

  void begin(std::function<Status(const Status&)> failed = {}) {
    const TensorView output = cuda_view(array_.data(), array_.count());
    const ConstTensorView input = output;
    auto staged = devices_.stage("call", {&input, 1}, {&output, 1}, {}, Fetch::kOnDemand);
    ASSERT_TRUE(staged.ok()) << staged.status().message();
    way_.hold(gate_);
    way_.write(array_.address(), result_);
    auto source = std::make_shared<int>(0);
    source_ = source;
    staged_ = std::move(staged).value();
    staged_->are_coming(way_.handle(), std::move(source));
    ASSERT_TRUE(staged_->send_back().ok());
    landing_ = std::make_shared<Landing>(std::vector{staged_}, std::move(failed));
  }
  void open() {
    gate_ = true;
    gate_.notify_all();
  }

  Gpu gpu_;
  GpuStream way_;
  Devices devices_;
  std::atomic<bool> gate_{false};
  const PinnedArray<int> result_{gpu_, {7, 8, 9}};
  const std::vector<int> right_{7, 8, 9};
  GpuArray<int> array_;
  std::weak_ptr<int> source_;
  std::shared_ptr<StagedTensors> staged_;
  std::shared_ptr<Landing> landing_;
};

TEST_F(LandingTest, IsOverWhenTheDeviceHasBroughtTheResult) {
  begin();
  EXPECT_FALSE(landing_->is_over());
  EXPECT_FALSE(source_.expired()) << "the device still reads it";
  open();
  EXPECT_TRUE(landing_->wait().ok());
  EXPECT_TRUE(landing_->is_over());
  EXPECT_EQ(array_.read(), right_);
  EXPECT_TRUE(source_.expired()) << "the memory is not given back";
}

TEST_F(LandingTest, GivesItsMemoryBackWhenAThreadLooks) {
  begin();
  open();
  while (!landing_->is_over()) std::this_thread::yield();
  EXPECT_TRUE(source_.expired());
}

TEST_F(LandingTest, OtherStreamsComeBehindItWhileTheHostGoesOn) {
  begin();
  const GpuStream other(gpu_);
  const GpuArray<int> copy(gpu_, std::vector<int>{0, 0, 0});
  ASSERT_TRUE(landing_->put_behind(*staged_, {other.handle()}).ok());
  other.copy(copy.address(), array_.address(), array_.bytes());
  EXPECT_FALSE(landing_->is_over());
  open();
  other.synchronize();
  EXPECT_EQ(copy.read(), right_) << "the other stream has not waited";
}

TEST_F(LandingTest, TakesNoStreamThatCannotWait) {
  begin();
  void* const per_thread = reinterpret_cast<void*>(std::uintptr_t{2});
  EXPECT_EQ(landing_->put_behind(*staged_, {per_thread}).code(), Code::kInvalidArgument);
  open();
  EXPECT_TRUE(landing_->wait().ok());
}

/// As the tensors of a bucket may be.
TEST_F(LandingTest, AStreamWaitsForTheTensorsOnItsDeviceAlone) {
  begin();
  const GpuStream here(gpu_);
  const Gpu elsewhere(1, CUDA_STAND_IN);  // whose context is the thread's from now on
  const GpuStream way(elsewhere);
  const GpuArray<int> array(elsewhere, {0, 0, 0});
  const TensorView output = cuda_view(array.data(), array.count(), 1);
  const ConstTensorView input = output;
  auto staged = devices_.stage("call", {&input, 1}, {&output, 1}, {}, Fetch::kOnDemand);
  ASSERT_TRUE(staged.ok()) << staged.status().message();
  staged.value()->are_coming(way.handle(), std::make_shared<int>(0));
  ASSERT_TRUE(staged.value()->send_back().ok());
  Landing both({staged_, staged.value()}, {});
  const GpuStream there(elsewhere);
  EXPECT_TRUE(both.put_behind(*staged_, {here.handle()}).ok());
  EXPECT_TRUE(both.put_behind(*staged.value(), {there.handle()}).ok());
  EXPECT_EQ(both.put_behind(*staged_, {there.handle()}).code(), Code::kInvalidArgument);
  open();
  EXPECT_TRUE(both.wait().ok());
}

TEST_F(LandingTest, SeveralThreadsMayWait) {
  begin();
  std::vector<std::thread> threads;
  std::atomic<int> fine{0};
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { fine += landing_->wait().ok() ? 1 : 0; });
  open();
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(fine, 4);
}

TEST_F(LandingTest, AFailureIsReportedOnceAndIsTheSameForAll) {
  int times = 0;
  begin([&](const Status& why) {
    ++times;
    return why.within("left");
  });
  ::setenv("CUDA_STAND_IN_FAIL", "cuEventSynchronize:1", 1);
  open();
  const Status first = landing_->wait();
  EXPECT_EQ(first.code(), Code::kUnavailable);
  EXPECT_TRUE(first.message().starts_with("left: call: ")) << first.message();
  EXPECT_EQ(landing_->wait().message(), first.message());
  EXPECT_EQ(landing_->put_behind(*staged_, {way_.handle()}).message(), first.message());
  EXPECT_EQ(times, 1);
}

/// As a Work does it.
TEST_F(LandingTest, AnOperationIsCompleteWhenItsResultHasLanded) {
  begin();
  detail::WorkState work([] {});
  std::thread program([&] {
    work.wait_for_all_ranks();
    EXPECT_EQ(work.outcome_of_all_ranks().value().size(), 1U);
  });
  work.complete(kOne, landing_, staged_);
  program.join();
  EXPECT_FALSE(work.ready());
  EXPECT_FALSE(work.wait_until(std::chrono::steady_clock::now()));
  open();
  work.wait();
  EXPECT_TRUE(work.ready());
  EXPECT_EQ(array_.read(), right_);
  EXPECT_TRUE(work.outcome().ok());
}

TEST_F(LandingTest, WhatFollowsAnOperationSeesItsResult) {
  begin();
  detail::WorkState work([] {});
  std::vector<int> seen;
  work.when_complete([&] { seen = array_.read(); });
  open();
  work.complete(kOne, landing_, staged_);
  EXPECT_EQ(seen, right_);
}

}  // namespace
}  // namespace elastic::device
