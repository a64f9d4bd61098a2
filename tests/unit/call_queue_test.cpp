#include "runtime/call_queue.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "elastic/error.hpp"
#include "elastic/work.hpp"

namespace elastic::runtime {
namespace {

Contributors contributors(WorkerId worker) {
  return {std::make_shared<const std::vector<WorkerId>>(1, worker), 7};
}

class CallQueueTest : public testing::Test {
 protected:
  Work add(std::function<Contributors()> call) { return Work(queue_.add(std::move(call))); }
  /// A call that ends when `gate` is open.
  Work add_behind(std::shared_future<void> gate, WorkerId worker) {
    return add([gate, worker] {
      gate.wait();
      return contributors(worker);
    });
  }

  std::promise<void> gate_;
  std::shared_future<void> open_ = gate_.get_future().share();
  CallQueue queue_{[] {}};
};

TEST_F(CallQueueTest, MakesCallsInTheirOrderOnOneThread) {
  std::vector<int> order;
  std::vector<Work> works;
  std::thread::id thread;
  for (int i = 0; i < 100; ++i) {
    works.push_back(add([&, i] {
      order.push_back(i);
      thread = std::this_thread::get_id();
      return contributors(static_cast<WorkerId>(i));
    }));
  }
  wait_all(works);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_EQ(works.back().contributors().workers().front(), 99U);
}

TEST_F(CallQueueTest, WaitsForWhatWasAddedBefore) {
  const Work first = add_behind(open_, 1);
  std::atomic<bool> waited{false};
  std::thread waiter([&] {
    queue_.wait();
    waited = true;
  });
  EXPECT_FALSE(first.ready());
  gate_.set_value();
  waiter.join();
  EXPECT_TRUE(waited && first.ready());
  queue_.wait();  // nothing is left
}

TEST_F(CallQueueTest, DoesNotWaitForTheCallsOfOtherThreads) {
  Work other;
  std::thread([&] { other = add_behind(open_, 1); }).join();
  queue_.wait_for_own();
  EXPECT_FALSE(other.ready());
  gate_.set_value();
  other.wait();
}

TEST_F(CallQueueTest, ACallMayWaitForTheQueueThatItIsIn) {
  add([this] {
    queue_.wait();
    return contributors(1);
  }).wait();
}

TEST_F(CallQueueTest, AnErrorIsThatOfItsCallAlone) {
  const Work wrong =
      add([]() -> Contributors { throw Error(ErrorCode::kRootLost, "no root", 3, 9); });
  const Work right = add([] { return contributors(5); });
  for (int i = 0; i < 2; ++i) {
    try {
      wrong.wait();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kRootLost);
      EXPECT_EQ(error.peer(), 3);
      EXPECT_EQ(error.generation(), 9U);
    }
  }
  EXPECT_EQ(right.wait().workers().front(), 5U);
  const std::vector<Work> both{wrong, right};
  EXPECT_THROW(wait_all(both), Error);
}

TEST_F(CallQueueTest, AStoppedOneMakesWhatItHasAndTakesNothingMore) {
  gate_.set_value();
  const Work last = add_behind(open_, 1);
  queue_.stop();
  EXPECT_TRUE(last.ready());
  EXPECT_THROW(add([] { return contributors(1); }), Error);
}

TEST_F(CallQueueTest, WaitAnyFindsTheFirstThatIsComplete) {
  CallQueue other([] {});
  const std::vector<Work> works{add_behind(open_, 1),
                                Work(other.add([] { return contributors(2); }))};
  EXPECT_EQ(wait_any(works), 1U);
  gate_.set_value();
  works.front().wait();
  EXPECT_EQ(wait_any(works), 0U);
  EXPECT_THROW(wait_any(std::vector<Work>()), Error);
  EXPECT_THROW(wait_any(std::vector<Work>{Work()}), Error);
}

TEST_F(CallQueueTest, ContinuesOnceWhenItIsComplete) {
  std::atomic<int> before{0};
  const Work work = add_behind(open_, 4);
  work.then(
      [&](const Work& done) { before += done.contributors().workers().front() == 4 ? 1 : 9; });
  EXPECT_EQ(before, 0);
  gate_.set_value();
  work.wait();
  add([] { return contributors(1); }).wait();  // comes after the continuation
  EXPECT_EQ(before, 1);
  int after = 0;
  work.then([&](const Work&) { ++after; });
  EXPECT_EQ(after, 1);
}

TEST_F(CallQueueTest, AContinuationIsAFunction) {
  const Work work = add_behind(open_, 2);
  try {
    work.then(nullptr);
    ADD_FAILURE() << "then(nullptr) was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  }
  gate_.set_value();
  work.wait();
}

/// A wait for another operation could be one for this thread itself.
TEST_F(CallQueueTest, AContinuationMayNotWait) {
  std::string what;
  const Work later = add_behind(open_, 2);
  const Work first = Work(CallQueue([] {}).add([] { return contributors(1); }));
  first.then([&](const Work&) {
    try {
      later.wait();
    } catch (const Error& error) {
      what = error.what();
    }
  });
  EXPECT_NE(what.find("the function given to Work::then"), std::string::npos) << what;
  first.then([](const Work&) { throw std::runtime_error("is logged"); });
  gate_.set_value();
  later.wait();
}

}  // namespace
}  // namespace elastic::runtime
