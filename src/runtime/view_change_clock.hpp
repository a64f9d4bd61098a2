#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/clock.hpp"
#include "elastic/view_change.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::runtime {

/// Takes the time of a change of the view. Control tells it what happens; the first view of a
/// worker is not a change.
///
/// Thread-safe: links break and operations complete on the threads that run them. Costs nothing
/// while the view stays.
class ViewChangeClock {
 public:
  /// Something is wrong with the view `generation`. Only the first time counts until the next is
  /// installed; what is said of one before the present is late, and does not.
  void notice(std::uint64_t generation);
  void report(std::uint64_t generation);
  void decide(const rendezvous::View& view);
  void link();
  void install(std::uint64_t generation);
  /// The first operation in the view that was installed last is complete.
  void resume();

  /// How many changes were installed.
  std::uint64_t installed() const { return installed_.load(std::memory_order_relaxed); }
  /// The latest change that was installed.
  ViewChange latest() const;

 private:
  void begin(TimePoint now);  // with mutex_ held

  mutable std::mutex mutex_;
  std::optional<ViewChange> present_;  // noticed, not installed
  ViewChange latest_;
  std::uint64_t generation_ = 0;  // installed; 0: none yet
  std::atomic<std::uint64_t> installed_{0};
};

}  // namespace elastic::runtime
