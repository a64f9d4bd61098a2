#pragma once

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/clock.hpp"
#include "base/event_fd.hpp"
#include "base/unique_fd.hpp"

namespace elastic::coordinator {

/// One descriptor for poll(2) that becomes readable when another thread calls `set` or a timer that
/// was armed expires.
class WakeUp {
 public:
  WakeUp()
      : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
        both_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(both_.get(), EPOLL_CTL_ADD, event_.fd(), &event);
    ::epoll_ctl(both_.get(), EPOLL_CTL_ADD, timer_.get(), &event);
  }

  int fd() const { return both_.get(); }
  /// Any thread.
  void set() { event_.set(); }
  void clear() { event_.clear(); }
  /// Fires once, after `delay`; zero disarms.
  void arm(Milliseconds delay) {
    itimerspec spec{};
    spec.it_value.tv_sec = delay.count() / 1000;
    spec.it_value.tv_nsec = delay.count() % 1000 * 1000000;
    ::timerfd_settime(timer_.get(), 0, &spec, nullptr);
  }

 private:
  EventFd event_;
  UniqueFd timer_;
  UniqueFd both_;
};

}  // namespace elastic::coordinator
