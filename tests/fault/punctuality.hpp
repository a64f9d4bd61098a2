#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace elastic::testing {

/// Measures, while it lives, how late this machine wakes sleeping threads. Tests extend bounds on
/// wall time by the worst delay, so that they hold on a loaded machine, too.
class Punctuality {
 public:
  using Duration = std::chrono::steady_clock::duration;

  Punctuality() : thread_([this] { watch(); }) {}
  ~Punctuality() {
    ended_ = true;
    thread_.join();
  }
  Punctuality(const Punctuality&) = delete;
  Punctuality& operator=(const Punctuality&) = delete;

  Duration worst() const { return worst_; }

 private:
  void watch() {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kPeriod(10);
    while (!ended_) {
      const Clock::time_point due = Clock::now() + kPeriod;
      std::this_thread::sleep_until(due);
      worst_ = std::max(worst_.load(), Duration(Clock::now() - due));
    }
  }

  std::atomic<bool> ended_{false};
  std::atomic<Duration> worst_{Duration(0)};
  std::thread thread_;
};

}  // namespace elastic::testing
