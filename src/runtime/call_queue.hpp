#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.hpp"
#include "coordinator/work_state.hpp"
#include "elastic/results.hpp"

namespace elastic::runtime {

/// The unnamed asynchronous calls of a worker. They keep the program order, so a thread of its own
/// makes them one after another, each as a blocking call. The thread starts with the first one.
///
/// Any thread.
class CallQueue {
 public:
  /// `about_to_block`: see WorkState.
  explicit CallQueue(std::function<void()> about_to_block)
      : about_to_block_(std::move(about_to_block)) {}
  /// Makes the calls that are left, which have to end soon: the lanes are closed.
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  /// `call` blocks, and throws its errors.
  std::shared_ptr<detail::WorkState> add(std::function<Contributors()> call);
  /// Waits until all calls that were added before are complete. Returns at once on the queue's own
  /// thread, which makes one of them.
  void wait();
  /// Waits until all calls that this thread has added are complete.
  void wait_for_own();
  /// Ends the thread as the destructor does. Later calls fail.
  void stop();

 private:
  struct Entry {
    std::function<Contributors()> call;
    std::shared_ptr<detail::WorkState> work;
    std::thread::id added_by;
  };

  void loop();
  static void make(const Entry& entry);

  const std::function<void()> about_to_block_;
  std::atomic<bool> open_{false};  // calls are not complete; readable without the mutex
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Entry> entries_ ELASTIC_GUARDED_BY(mutex_);  // that are not complete
  std::uint64_t added_ ELASTIC_GUARDED_BY(mutex_) = 0;
  std::uint64_t complete_ ELASTIC_GUARDED_BY(mutex_) = 0;
  bool stopping_ ELASTIC_GUARDED_BY(mutex_) = false;
  std::thread thread_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::runtime
