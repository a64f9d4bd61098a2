#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace elastic::testing {

/// How late this machine wakes up who sleeps, while the object lives: a bound on wall time that is
/// to hold on a loaded machine too is as much wider as the machine is late.
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
