#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "elastic/diagnostics.hpp"
#include "rendezvous/protocol/messages.hpp"
#include "timeline/timeline.hpp"

namespace elastic::runtime {

/// Measures view changes, from events that Control reports. The first view of a worker is not a
/// change.
///
/// Thread-safe: links break and operations complete on the threads that run them. No cost while the
/// view does not change.
class ViewChangeClock {
 public:
  /// `timeline`, if any, gets the changes, and outlives this.
  explicit ViewChangeClock(timeline::Timeline* timeline = nullptr) : timeline_(timeline) {}

  /// Something is wrong with the view `generation`. Only the first call before the next
  /// installation has an effect. A call about a view before the present one is late, and has none.
  void notice(std::uint64_t generation);
  void report(std::uint64_t generation);
  void decide(const rendezvous::View& view);
  void link();
  void install(std::uint64_t generation);
  /// The first operation in the view installed last is complete.
  void resume();

  /// The number of installed changes.
  std::uint64_t installed() const { return installed_.load(std::memory_order_relaxed); }
  /// The latest change that was installed.
  ViewChange latest() const;
  /// The latest changes after which an operation was completed, oldest first.
  std::deque<ViewChange> resumed() const;

 private:
  void begin(TimePoint now) ELASTIC_REQUIRES(mutex_);

  timeline::Timeline* const timeline_;
  mutable Mutex mutex_;
  std::optional<ViewChange> present_ ELASTIC_GUARDED_BY(mutex_);  // noticed, not installed
  ViewChange latest_ ELASTIC_GUARDED_BY(mutex_);
  std::deque<ViewChange> resumed_ ELASTIC_GUARDED_BY(mutex_);
  std::uint64_t generation_ ELASTIC_GUARDED_BY(mutex_) = 0;  // installed; 0: none yet
  std::atomic<std::uint64_t> installed_{0};
};

}  // namespace elastic::runtime
