#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace elastic::simulation {

/// A clock that jumps to what is to happen next. Things due at one time happen in the order in
/// which they were asked for, so a run is a function of its seed.
class VirtualTime {
 public:
  VirtualTime() { agenda_.reserve(256); }

  TimePoint now() const { return now_; }
  Duration elapsed() const { return now_ - kStart; }

  void at(TimePoint due, std::function<void()> what) {
    agenda_.push_back({std::max(due, now_), ++asked_, std::move(what)});
    std::push_heap(agenda_.begin(), agenda_.end());
  }
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

  /// Goes on until `over()`; false at `limit`, when more than `most` things have happened, or when
  /// nothing is left to happen.
  template <typename Over>
  bool run(TimePoint limit, std::uint64_t most, const Over& over) {
    for (; !over(); --most) {
      if (agenda_.empty() || most == 0) return false;
      std::pop_heap(agenda_.begin(), agenda_.end());
      const Due next = std::move(agenda_.back());
      agenda_.pop_back();
      if (next.at > limit) return false;
      now_ = next.at;
      next.what();
    }
    return true;
  }

 private:
  struct Due {
    TimePoint at;
    std::uint64_t order;
    std::function<void()> what;
    /// For a heap with the earliest on top.
    bool operator<(const Due& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };

  static constexpr TimePoint kStart{std::chrono::hours(1)};
  TimePoint now_ = kStart;
  std::uint64_t asked_ = 0;
  std::vector<Due> agenda_;
};

}  // namespace elastic::simulation
