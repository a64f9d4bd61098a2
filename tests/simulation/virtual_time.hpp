#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/clock.hpp"

namespace elastic::simulation {

/// A clock that jumps to what is to happen next. Things due at one time happen in the order in
/// which they were asked for, so a run is a function of its seed.
class VirtualTime {
 public:
  TimePoint now() const { return now_; }
  void at(TimePoint due, std::function<void()> what) {
    agenda_.emplace(std::pair(due < now_ ? now_ : due, ++asked_), std::move(what));
  }
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  /// Goes on until `over` or `limit`; false at the limit, or when nothing is left to happen.
  bool run(TimePoint limit, const std::function<bool()>& over) {
    while (!over()) {
      if (agenda_.empty() || agenda_.begin()->first.first > limit) return false;
      auto next = agenda_.extract(agenda_.begin());
      now_ = next.key().first;
      next.mapped()();
    }
    return true;
  }

 private:
  TimePoint now_{std::chrono::hours(1)};
  std::uint64_t asked_ = 0;
  std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> agenda_;
};

}  // namespace elastic::simulation
