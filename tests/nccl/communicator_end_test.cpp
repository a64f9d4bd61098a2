// How a communicator is given up.
#include <thread>

#include <gmock/gmock.h>

#include "nccl/communicator_fixture.hpp"

namespace elastic::collectives::nccl {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Init = NcclScript::Init;

class CommunicatorEndTest : public CommunicatorFixture {};

TEST_F(CommunicatorEndTest, AbortsWhileRanksMeet) {
  prepare(2, {}, /*came=*/1);
  of(0).abort();
  EXPECT_EQ(of(0).ready(some_day()).code(), Code::kAborted);
  all_ended();
  EXPECT_EQ(nccl_->counts().aborts, 0) << "NCCL had made nothing";
}

TEST_F(CommunicatorEndTest, AbortsWhileItIsMade) {
  for (int rank = 0; rank < 3; ++rank) nccl_->script(rank, {.init = Init::kNeverDone});
  prepare(3, {});
  until([&] { return nccl_->counts().inits == 3; });
  abort_all();
  for (Communicator* each : all()) EXPECT_EQ(each->ready(some_day()).code(), Code::kAborted);
  all_ended();
  EXPECT_EQ(nccl_->counts().aborts, 3);
}

TEST_F(CommunicatorEndTest, AbortsWhileTheRanksAgree) {
  nccl_->script(1, {.init = Init::kNeverDone});
  prepare(2, {});
  until([&] { return of(0).phase() == Phase::kAgreeing; });
  abort_all();
  for (Communicator* each : all()) EXPECT_EQ(each->ready(some_day()).code(), Code::kAborted);
  all_ended();
  EXPECT_EQ(nccl_->counts().aborts, 2);
}

TEST_F(CommunicatorEndTest, LetsNoCallInAfterwards) {
  prepare(2, {});
  all_ready();
  abort_all();
  for (Communicator* each : all()) {
    EXPECT_EQ(launch(*each).code(), Code::kAborted);
    EXPECT_EQ(each->check().code(), Code::kAborted);
    EXPECT_NE(each->phase(), Phase::kReady);
  }
  all_ended();
  EXPECT_EQ(nccl_->counts().launches, 0);
  EXPECT_EQ(nccl_->counts().aborts, 2);
}

TEST_F(CommunicatorEndTest, AbortsOnceOnly) {
  prepare(1, {});
  all_ready();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { of(0).abort(); });
  for (std::thread& each : threads) each.join();
  all_ended();
  EXPECT_EQ(nccl_->counts().aborts, 1);
}

TEST_F(CommunicatorEndTest, DoesNotWaitForALongAbort) {
  nccl_->script(0, {.abort_waits = true});
  prepare(1, {.abort = std::chrono::seconds(30)});
  all_ready();
  of(0).abort();
  EXPECT_EQ(launch(of(0)).code(), Code::kAborted);
  EXPECT_EQ(of(0).ended(in(milliseconds(20))).code(), Code::kTimeout) << "not yet";
  nccl_->release();
  all_ended();
}

TEST_F(CommunicatorEndTest, SaysThatTheWorkerHasToExitWhereAnAbortDoesNotReturn) {
  nccl_->script(0, {.abort_waits = true});
  prepare(2, {.abort = kTimeLimit});
  all_ready();
  abort_all();
  const Status stuck = of(0).ended(some_day());
  EXPECT_EQ(stuck.code(), Code::kUnavailable);
  EXPECT_THAT(stuck.message(), AllOf(HasSubstr("ncclCommAbort has not returned within " +
                                               std::to_string(kTimeLimit.count()) + " ms"),
                                     HasSubstr("generation 7"), HasSubstr("has to exit"),
                                     HasSubstr("come back as a joiner")));
  EXPECT_EQ(of(0).phase(), Phase::kStuck);
  EXPECT_TRUE(of(1).ended(some_day()).ok()) << "the other one is free";
  nccl_->release();
}

TEST_F(CommunicatorEndTest, WaitsWithTheAbortForTheCallUnderWay) {
  prepare(1, {});
  all_ready();
  std::thread caller([&] { EXPECT_EQ(launch_and_hang(of(0)).code(), Code::kAborted); });
  until([&] { return nccl_->counts().waiting == 1; });
  of(0).abort();
  EXPECT_EQ(of(0).phase(), Phase::kDying);
  EXPECT_EQ(nccl_->counts().aborts, 0);
  nccl_->release();
  caller.join();
  all_ended();
  EXPECT_EQ(nccl_->counts().aborts, 1);
}

TEST_F(CommunicatorEndTest, NeverAbortsDuringACallThatDoesNotReturn) {
  prepare(1, {.abort = milliseconds(50)});
  all_ready();
  std::thread caller([&] { EXPECT_EQ(launch_and_hang(of(0)).code(), Code::kAborted); });
  until([&] { return nccl_->counts().waiting == 1; });
  of(0).abort();
  const Status stuck = of(0).ended(some_day());
  EXPECT_THAT(stuck.message(), AllOf(HasSubstr("launch, which was under way, has not returned"),
                                     HasSubstr("has to exit")));
  EXPECT_EQ(nccl_->counts().aborts, 0);
  nccl_->release();
  caller.join();
  until([&] { return nccl_->counts().aborts == 1; });
}

TEST_F(CommunicatorEndTest, NoneWaitsForAnotherToBeGivenBack) {
  constexpr int kRanks = 3;
  for (int rank = 0; rank < kRanks; ++rank) nccl_->script(rank, {.abort_waits = true});
  prepare(kRanks, {});
  all_ready();
  abort_all();
  until([&] { return nccl_->counts().waiting == kRanks; });
  nccl_->release();
  all_ended();
}

TEST_F(CommunicatorEndTest, CanBeForgottenAtAnyTime) {
  nccl_->script(1, {.init = Init::kNeverReturns});
  prepare(2, {});
  until([&] { return nccl_->counts().waiting == 1 && nccl_->counts().inits == 2; });
  views_.clear();  // does not wait
  nccl_->release();
  until([&] { return library_.use_count() == 1; });
  EXPECT_EQ(nccl_->counts().aborts, 2);
}

}  // namespace
}  // namespace elastic::collectives::nccl
