#pragma once

#include <cstdint>

#include <sys/eventfd.h>

#include "base/unique_fd.hpp"

namespace elastic {

/// A flag that poll(2) can wait for. Set and cleared from any thread.
class EventFd {
 public:
  EventFd() noexcept : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  int fd() const noexcept { return fd_.get(); }
  bool valid() const noexcept { return static_cast<bool>(fd_); }
  void set() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
  }
  void clear() noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = ::read(fd_.get(), &count, sizeof count);
  }

 private:
  UniqueFd fd_;
};

}  // namespace elastic
