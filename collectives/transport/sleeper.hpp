#pragma once

#include <atomic>
#include <cstdint>
#include <poll.h>

#include "base/event_fd.hpp"

namespace elastic::transport {

/// Lets one thread sleep in poll(2) without missing what others tell it. The sleeper reads `told`,
/// looks whether there is something to do, and if there is nothing, calls `prepare` with what it
/// read, sleeps on `watched`, and calls `finish` with what poll(2) said.
class Sleeper {
 public:
  /// False where this process had no descriptor left for it: then nothing wakes the sleeper.
  bool valid() const { return event_.valid(); }

  std::uint64_t told() const { return told_.load(std::memory_order_seq_cst); }

  /// Announces the sleep. False if something was told since `told` was `seen`: do not sleep then.
  bool prepare(std::uint64_t seen) {
    asleep_.store(true, std::memory_order_seq_cst);
    return told() == seen;
  }
  /// For poll(2) to watch in the sleep.
  pollfd watched() const { return {event_.fd(), POLLIN, 0}; }
  /// Ends the sleep; also after `prepare` was false. An event that is set later than that ends the
  /// next sleep at once, and is cleared then.
  void finish(const pollfd& watched) {
    asleep_.store(false, std::memory_order_seq_cst);
    if (watched.revents != 0) event_.clear();
  }

  /// Any thread. A system call only if the other one sleeps.
  void tell() noexcept {
    told_.fetch_add(1, std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst)) event_.set();
  }

 private:
  std::atomic<std::uint64_t> told_{0};
  std::atomic<bool> asleep_{false};
  EventFd event_;
};

}  // namespace elastic::transport
