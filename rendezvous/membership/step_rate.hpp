#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>

#include "base/clock.hpp"

namespace elastic::rendezvous {

/// The job's steps per second: the mean over about the last ten seconds, from heartbeats. Belongs
/// to the thread of its Membership.
class StepRate {
 public:
  void told(std::uint64_t commits, TimePoint now) {
    commits_ = std::max(commits_, commits);
    if (!samples_.empty() && now - samples_.back().at < kBetweenSamples) return;
    samples_.push_back({now, commits_});
    while (samples_.size() > 2 && now - samples_[1].at >= kMemory) samples_.pop_front();
  }

  /// \returns 0 until there are enough samples.
  double per_second(TimePoint now) const {
    if (samples_.empty()) return 0;
    const std::chrono::duration<double> time = now - samples_.front().at;
    if (time < kBetweenSamples) return 0;
    return static_cast<double>(commits_ - samples_.front().commits) / time.count();
  }

 private:
  static constexpr Milliseconds kBetweenSamples{500};
  static constexpr Milliseconds kMemory{10000};

  struct Sample {
    TimePoint at;
    std::uint64_t commits;
  };
  std::uint64_t commits_ = 0;
  std::deque<Sample> samples_;
};

}  // namespace elastic::rendezvous
