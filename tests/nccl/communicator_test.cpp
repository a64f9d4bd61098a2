// How a communicator begins, and what it is good for while it lives.
#include <atomic>
#include <iostream>
#include <memory>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "nccl/communicator_fixture.hpp"
#include "nccl/native_exchange.hpp"

namespace elastic::collectives::nccl {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Init = NcclScript::Init;

class CommunicatorTest : public CommunicatorFixture {
 protected:
  /// That no rank has got one, each for this reason.
  void expect_no_rank_ready(Code code, const std::string& why) {
    for (Communicator* each : all()) {
      const Status ready = each->ready(some_day());
      EXPECT_EQ(ready.code(), code);
      EXPECT_THAT(ready.message(), HasSubstr(why));
    }
  }
};

TEST_F(CommunicatorTest, IsReadyOnAllRanks) {
  for (int size = 1; size <= 4; ++size) {
    nccl_->reset();
    prepare(size, {});
    all_ready();
    for (Communicator* each : all()) EXPECT_TRUE(launch(*each).ok());
    abort_all();
    all_ended();
    const auto counts = nccl_->counts();
    EXPECT_EQ(counts.ids, 1) << "more than rank 0 made one";
    EXPECT_EQ(counts.inits, size);
    EXPECT_EQ(counts.aborts, size);
    views_.clear();
    until([&] { return library_.use_count() == 1; });
  }
}

TEST_F(CommunicatorTest, IsNotUsedBeforeAllHaveIt) {
  nccl_->script(1, {.init = Init::kNeverDone});
  prepare(2, {});
  until([&] { return of(0).phase() == Phase::kAgreeing; });
  for (Communicator* each : all()) {
    EXPECT_THAT(launch(*each).message(), HasSubstr("generation 7 is not ready for use"));
    EXPECT_EQ(each->check().code(), Code::kUnavailable);
  }
  EXPECT_EQ(nccl_->counts().launches, 0);
  abort_all();
  all_ended();
}

TEST_F(CommunicatorTest, IsNoBodysWhereOneRankIsNeverDone) {
  nccl_->script(1, {.init = Init::kNeverDone});
  prepare(3, {.start = kTimeLimit});
  expect_no_rank_ready(Code::kTimeout,
                       "rank 1: NCCL has not made the communicator of generation 7");
  all_ended();
  EXPECT_EQ(nccl_->counts().aborts, 3);
}

TEST_F(CommunicatorTest, IsNoBodysWhereOneRankFails) {
  for (const Init init : {Init::kFailsAtOnce, Init::kFailsLater}) {
    nccl_->reset();
    nccl_->script(2, {.init = init});
    prepare(3, {.start = kTimeLimit});
    for (Communicator* each : all()) {
      const Status ready = each->ready(some_day());
      // If it never comes, the others may report first that NCCL waits for it.
      EXPECT_THAT(ready.message(), AllOf(HasSubstr("no communicator for generation 7: rank "),
                                         ::testing::AnyOf(HasSubstr("as it was told to"),
                                                          HasSubstr("a rank did not come"))));
    }
    all_ended();
    EXPECT_EQ(nccl_->counts().aborts, init == Init::kFailsAtOnce ? 2 : 3);
    views_.clear();
    until([&] { return library_.use_count() == 1; });
  }
}

TEST_F(CommunicatorTest, TellsAFaultOfItsOwnFromALoss) {
  const std::vector<std::pair<int, Code>> cases{{Script::kCudaError, Code::kUnavailable},
                                                {Script::kSystemError, Code::kPeerLost}};
  for (const auto& [failure, code] : cases) {
    nccl_->script(0, {.init = Init::kFailsAtOnce, .failure = failure});
    prepare(1, {});
    expect_no_rank_ready(
        code, "rank 0: ncclCommInitRankConfig: unhandled system error: as it was told to");
    all_ended();
  }
}

/// NCCL itself, where it is. Without a device it says so soon; with one it serves a view of one.
TEST_F(CommunicatorTest, IsMadeByTheRealLibrary) {
  auto real = NcclLibrary::load("");
  if (!real.ok()) GTEST_SKIP() << real.status().message();
  std::swap(library_, real.value());
  prepare(1, {});
  const Status ready = of(0).ready(some_day());
  if (ready.ok()) {
    EXPECT_TRUE(of(0).check().ok());
    of(0).abort();
  } else {
    std::cout << ready.message() << '\n';
    EXPECT_THAT(ready.message(), HasSubstr("no communicator for generation 7: rank 0: nccl"));
  }
  EXPECT_TRUE(of(0).ended(some_day()).ok());
}

TEST_F(CommunicatorTest, IsNotMadeWhereARankDoesNotCome) {
  prepare(3, {.start = milliseconds(100)}, /*came=*/2);
  expect_no_rank_ready(Code::kTimeout, "there is no communicator for generation 7 within 100 ms");
  all_ended();
  EXPECT_EQ(nccl_->counts().inits, 0);
}

TEST_F(CommunicatorTest, DoesNotWaitForAnInitThatDoesNotReturn) {
  nccl_->script(1, {.init = Init::kNeverReturns});
  prepare(2, {.start = kTimeLimit, .abort = kTimeLimit});
  EXPECT_THAT(of(1).ready(some_day()).message(),
              HasSubstr("ncclCommInitRankConfig does not return"));
  const Status stuck = of(1).ended(some_day());
  EXPECT_EQ(stuck.code(), Code::kUnavailable);
  EXPECT_THAT(stuck.message(), AllOf(HasSubstr("ncclCommInitRankConfig, which was under way"),
                                     HasSubstr("this worker has to exit")));
  EXPECT_EQ(of(0).ready(some_day()).code(), Code::kTimeout);
  EXPECT_TRUE(of(0).ended(some_day()).ok());
  EXPECT_EQ(nccl_->counts().aborts, 1) << "one whose init is under way must not be aborted";
  nccl_->release();
  until([&] { return nccl_->counts().aborts == 2; });
}

TEST_F(CommunicatorTest, ChoosesTheDeviceForEveryThread) {
  auto world = native_world(1, all_wirings().front(), {});
  struct Threads {
    std::mutex mutex;
    std::set<std::thread::id> seen;
    int times = 0;
  };
  // The thread that ends the communicator comes after this test.
  const auto threads = std::make_shared<Threads>();
  const auto times = [threads] {
    const std::lock_guard lock(threads->mutex);
    return threads->times;
  };
  CommunicatorPlan plan{{7, 0, 1}, exchange_over(std::move(world.backends[0]), 1), {}, [threads] {
                          const std::lock_guard lock(threads->mutex);
                          threads->seen.insert(std::this_thread::get_id());
                          ++threads->times;
                          return Status();
                        }};
  auto& view = views_.emplace_back();
  view.push_back(Communicator::prepare(library_, std::move(plan)));
  all_ready();
  EXPECT_TRUE(launch(of(0)).ok());
  EXPECT_EQ(threads->seen.size(), 2U);
  const int before = times();
  of(0).abort();
  EXPECT_TRUE(of(0).ended(some_day()).ok());
  EXPECT_EQ(times(), before + 1) << "by the thread that ends it";
}

TEST_F(CommunicatorTest, SaysWhyThereIsNoDevice) {
  auto world = native_world(1, all_wirings().front(), {});
  auto& view = views_.emplace_back();
  view.push_back(Communicator::prepare(
      library_, {{7, 0, 1}, exchange_over(std::move(world.backends[0]), 1), {}, [] {
                   return Status(Code::kUnavailable, "device 9 is not there");
                 }}));
  expect_no_rank_ready(Code::kUnavailable, "rank 0: device 9 is not there");
  all_ended();
}

TEST_F(CommunicatorTest, LearnsFromNcclThatAPeerIsLost) {
  prepare(2, {});
  all_ready();
  EXPECT_TRUE(of(1).check().ok());
  nccl_->fail(1, Script::kRemoteError);
  const Status lost = of(1).check();
  EXPECT_EQ(lost.code(), Code::kPeerLost);
  EXPECT_THAT(lost.message(), AllOf(HasSubstr("remote process exited"), HasSubstr("told to")));
  EXPECT_EQ(launch(of(1)).code(), Code::kPeerLost) << "it is dead";
  EXPECT_TRUE(of(1).ended(some_day()).ok()) << "it gives itself back";
  EXPECT_TRUE(of(0).check().ok()) << "the other one knows nothing yet";
  of(0).abort();
  all_ended();
  EXPECT_EQ(nccl_->counts().aborts, 2);
}

TEST_F(CommunicatorTest, LearnsItWhileACallIsTakenUp) {
  prepare(1, {});
  all_ready();
  std::thread caller(
      [&] { EXPECT_EQ(launch(of(0), /*never_done=*/true).code(), Code::kPeerLost); });
  until([&] { return nccl_->counts().launches == 1; });
  nccl_->fail(0, Script::kRemoteError);
  caller.join();
  all_ended();
}

TEST_F(CommunicatorTest, EndsWhenNcclSaysNothing) {
  prepare(2, {});
  all_ready();
  EXPECT_EQ(launch(of(0), /*never_done=*/true, in(milliseconds(50))).code(), Code::kTimeout);
  EXPECT_TRUE(of(0).ended(some_day()).ok());
  EXPECT_EQ(launch(of(0)).code(), Code::kTimeout) << "the first reason stays";
}

TEST_F(CommunicatorTest, TakesCallsFromManyThreadsInTurn) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 25;
  prepare(1, {});
  all_ready();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < kCalls; ++call) {
        EXPECT_TRUE(launch(of(0)).ok());
        EXPECT_TRUE(of(0).check().ok());
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(nccl_->counts().launches, kThreads * kCalls);
}

TEST_F(CommunicatorTest, IsPreparedWhileTheOldOneGoesOn) {
  prepare(2, {});
  all_ready();
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  std::thread old_view([&, &old = of(0)] {
    for (; !stop; ++calls) EXPECT_TRUE(launch(old).ok());
  });
  nccl_->script(2, {.init = Init::kNeverReturns});
  prepare(3, {}, -1, /*generation=*/8);
  until([&] { return nccl_->counts().waiting == 1; });
  const int before = calls;
  until([&] { return calls > before + 3; });
  EXPECT_EQ(of(0).ready(Clock::now()).code(), Code::kTimeout) << "not yet";
  nccl_->release();
  all_ready();
  stop = true;
  old_view.join();
  for (auto& old : views_.front()) old->abort();
  for (Communicator* each : all()) EXPECT_TRUE(launch(*each).ok());
  EXPECT_EQ(nccl_->counts().ids, 2);
}

}  // namespace
}  // namespace elastic::collectives::nccl
