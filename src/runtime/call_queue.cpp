#include "runtime/call_queue.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/thread_name.hpp"
#include "elastic/error.hpp"

namespace elastic::runtime {

namespace {
/// The queue that the calling thread belongs to.
thread_local const CallQueue* own_queue = nullptr;
}  // namespace

CallQueue::~CallQueue() {
  stop();
}

void CallQueue::stop() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    thread.swap(thread_);
  }
  changed_.notify_all();
  if (thread.joinable()) thread.join();
}

std::shared_ptr<detail::WorkState> CallQueue::add(std::function<Contributors()> call) {
  auto work = std::make_shared<detail::WorkState>(about_to_block_);
  {
    const MutexLock lock(mutex_);
    if (stopping_) throw Error(ErrorCode::kNotInitialized, "this worker has left the job");
    if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
    entries_.push_back({std::move(call), work, std::this_thread::get_id()});
    ++added_;
    open_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
  return work;
}

void CallQueue::wait() {
  if (own_queue == this || !open_.load(std::memory_order_acquire)) return;
  MutexLock lock(mutex_);
  const std::uint64_t last = added_;
  changed_.wait_interruptibly(lock, [&]() ELASTIC_REQUIRES(mutex_) { return complete_ >= last; });
}

void CallQueue::wait_for_own() {
  MutexLock lock(mutex_);
  const std::thread::id self = std::this_thread::get_id();
  changed_.wait_interruptibly(lock, [&]() ELASTIC_REQUIRES(mutex_) {
    return std::ranges::none_of(entries_,
                                [self](const Entry& entry) { return entry.added_by == self; });
  });
}

void CallQueue::loop() {
  name_this_thread("elastic-async");
  own_queue = this;
  for (;;) {
    const Entry* next = nullptr;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock,
                    [&]() ELASTIC_REQUIRES(mutex_) { return stopping_ || !entries_.empty(); });
      if (entries_.empty()) return;
      next = &entries_.front();  // stays where it is while others are appended
    }
    make(*next);
    Entry done;
    {
      const MutexLock lock(mutex_);
      done = std::move(entries_.front());
      entries_.pop_front();
      ++complete_;
      open_.store(!entries_.empty(), std::memory_order_release);
    }
    changed_.notify_all();
  }
}

/// Completes the work before the call counts as complete: a thread that waits for the queue finds
/// it so.
void CallQueue::make(const Entry& entry) {
  try {
    entry.work->complete(entry.call());
  } catch (...) {
    entry.work->fail(std::current_exception());
  }
}

}  // namespace elastic::runtime
