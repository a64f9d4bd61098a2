#pragma once

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/clock.hpp"
#include "base/event_fd.hpp"
#include "base/status.hpp"
#include "base/unique_fd.hpp"

namespace elastic::coordinator {

/// One descriptor for poll(2) that becomes readable when another thread calls `set` or an armed
/// timer expires. Not usable if `status` is an error: no thread would be woken.
class WakeUp {
 public:
  WakeUp()
      : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
        both_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (event_.valid() && timer_ && both_ &&
        ::epoll_ctl(both_.get(), EPOLL_CTL_ADD, event_.fd(), &event) == 0 &&
        ::epoll_ctl(both_.get(), EPOLL_CTL_ADD, timer_.get(), &event) == 0) {
      return;
    }
    status_ = Status(Code::kUnavailable,
                     std::string("the thread for named operations cannot be woken, as this process "
                                 "cannot get the descriptors for it: ") +
                         std::strerror(errno) + "; raise the limit (ulimit -n)");
  }

  const Status& status() const { return status_; }
  int fd() const { return both_.get(); }
  /// Makes the descriptor readable. Any thread may call it.
  void set() {
    if (!set_.exchange(true)) event_.set();  // one system call for many calls of `set`
  }
  /// Call it before looking for new work: work that comes later sets it again.
  void clear() {
    event_.clear();
    set_.store(false);
  }
  /// Fires once, after `delay`; zero disarms.
  void arm(Milliseconds delay) {
    itimerspec spec{};
    spec.it_value.tv_sec = delay.count() / 1000;
    spec.it_value.tv_nsec = delay.count() % 1000 * 1000000;
    ::timerfd_settime(timer_.get(), 0, &spec, nullptr);
  }

 private:
  EventFd event_;
  std::atomic<bool> set_{false};
  UniqueFd timer_;
  UniqueFd both_;
  Status status_;
};

}  // namespace elastic::coordinator
