#pragma once

#include <atomic>
#include <cstdint>
#include <poll.h>

#include "base/event_fd.hpp"

namespace elastic::transport {

/// Lets one thread sleep in poll(2) without missing what others tell it. The sleeper reads `told`,
/// looks whether there is something to do, and if there is nothing, calls `prepare` with what it
/// read, sleeps, and calls `finish`.
class Sleeper {
 public:
  std::uint64_t told() const { return told_.load(std::memory_order_seq_cst); }

  /// Announces the sleep. False if something was told since `told` was `seen`: do not sleep then.
  bool prepare(std::uint64_t seen) {
    asleep_.store(true, std::memory_order_seq_cst);
    return told() == seen;
  }
  /// What poll(2) has to watch in the sleep.
  pollfd watched() const { return {event_.fd(), POLLIN, 0}; }
  /// Ends the sleep; also after `prepare` was false.
  void finish() {
    asleep_.store(false, std::memory_order_seq_cst);
    if (rung_.exchange(false, std::memory_order_acq_rel)) event_.clear();
  }

  /// Any thread. A system call only if the other one sleeps.
  void tell() noexcept {
    told_.fetch_add(1, std::memory_order_seq_cst);
    if (!asleep_.load(std::memory_order_seq_cst)) return;
    rung_.store(true, std::memory_order_release);
    event_.set();
  }

 private:
  std::atomic<std::uint64_t> told_{0};
  std::atomic<bool> asleep_{false};
  std::atomic<bool> rung_{false};
  EventFd event_;
};

}  // namespace elastic::transport
