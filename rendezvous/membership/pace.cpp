// The pace of a job: periods and limits that follow the number of workers, since one thread of the
// server reads what all of them send.
#include <algorithm>
#include <chrono>

#include "rendezvous/membership/state.hpp"

namespace elastic::rendezvous {
namespace {

/// The server reads at most 1,250 heartbeats in a second, of all workers.
constexpr std::chrono::microseconds kBetweenHeartbeats{800};
/// Heartbeats that a worker may miss where their period follows the size of the job.
constexpr int kMissedHeartbeats = 4;

}  // namespace

/// Sets the period of heartbeats in a job of so many workers: a multiple of the option's, so that
/// it changes seldom. Workers are told with the next view.
void Membership::State::set_period(std::size_t workers) {
  const Duration wanted = kBetweenHeartbeats * static_cast<std::int64_t>(workers);
  const std::int64_t multiple = (wanted + options_.heartbeat - Duration(1)) / options_.heartbeat;
  const Milliseconds period = options_.heartbeat * std::max<std::int64_t>(multiple, 1);
  if (period == period_) return;
  period_ = period;
  liveness_.set_pace(period_, silence_limit(), now_);
  stalls_.set_longest_gap(silence_limit());
}

/// The limit that the option sets, unless several heartbeats take longer.
Milliseconds Membership::State::stretched(Milliseconds limit) const {
  return period_ == options_.heartbeat ? limit : std::max(limit, kMissedHeartbeats * period_);
}

/// The silence after which a member is given up.
Milliseconds Membership::State::silence_limit() const {
  return stretched(options_.evict_after);
}

/// The time for a frozen member's report.
Milliseconds Membership::State::report_window() const {
  return stretched(options_.report_window);
}

}  // namespace elastic::rendezvous
