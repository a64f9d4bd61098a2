#pragma once

#include <cstdint>
#include <memory>
#include <poll.h>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/clock.hpp"

namespace elastic::simulation {

class Thread;

/// The object behind a simulated descriptor. Threads poll it; each change of its readiness is
/// followed by a call of changed().
class Descriptor {
 public:
  virtual ~Descriptor() = default;

  /// POLLIN and so on, as it is now.
  virtual short ready() const = 0;
  virtual ssize_t read(void* into, std::size_t bytes);
  virtual ssize_t write(const void* from, std::size_t bytes);
  virtual int shut_down() { return 0; }

  void changed();
  void poll(Thread& thread) { polling_.push_back(&thread); }
  void stop_polling(const Thread& thread) {
    std::erase_if(polling_, [&](const Thread* each) { return each == &thread; });
  }
  /// `set`, an epoll, is ready when this is.
  void belong_to(std::weak_ptr<Descriptor> set) { set_ = std::move(set); }

 private:
  std::vector<Thread*> polling_;
  std::weak_ptr<Descriptor> set_;
};

/// The descriptors of all simulated processes of a run, numbered so that they are no real ones.
class Descriptors {
 public:
  int open(std::shared_ptr<Descriptor> what);
  bool close(int number);
  std::shared_ptr<Descriptor> find(int number) const;
  static bool is_one(int number) { return number >= kFirst; }

  /// poll(2), by the current thread.
  int poll(pollfd* watched, nfds_t count, int timeout);

 private:
  static constexpr int kFirst = 1 << 24;
  std::vector<std::shared_ptr<Descriptor>> open_;
  std::size_t taken_ = 0;  // below this number none is free
};

/// Models eventfd(2).
class EventDescriptor final : public Descriptor {
 public:
  short ready() const override {
    return static_cast<short>(count_ > 0 ? POLLIN | POLLOUT : POLLOUT);
  }
  ssize_t read(void* into, std::size_t bytes) override;
  ssize_t write(const void* from, std::size_t bytes) override;

 private:
  std::uint64_t count_ = 0;
};

/// Models timerfd_create(2), for timers that fire once.
class TimerDescriptor final : public Descriptor,
                              public std::enable_shared_from_this<TimerDescriptor> {
 public:
  short ready() const override { return static_cast<short>(expired_ ? POLLIN : 0); }
  ssize_t read(void* into, std::size_t bytes) override;
  /// Zero disarms.
  void arm(Duration delay);

 private:
  bool expired_ = false;
  std::uint64_t armed_ = 0;
};

/// Models epoll_create1(2), for descriptors that are polled.
class EpollDescriptor final : public Descriptor,
                              public std::enable_shared_from_this<EpollDescriptor> {
 public:
  short ready() const override;
  void add(const std::shared_ptr<Descriptor>& member);

 private:
  std::vector<std::weak_ptr<Descriptor>> members_;
};

}  // namespace elastic::simulation
