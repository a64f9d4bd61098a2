#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <poll.h>
#include <vector>

#include "base/clock.hpp"
#include "base/event_fd.hpp"
#include "base/status.hpp"
#include "collectives/transport/link.hpp"
#include "collectives/transport/spin_backoff.hpp"
#include "collectives/transport/spin_pause.hpp"

namespace elastic::transport {

/// The links of one worker to the other members of a view, for one lane, and the one place where a
/// thread waits for them.
///
/// Owned by the thread that runs the lane's operation, but for `abort`, which any thread may call.
class Mesh {
 public:
  /// `links[r]` leads to rank r; links[rank] is null. `abort_event` wakes the thread that waits
  /// here, and is cleared: it can be that of an earlier mesh in which no thread waits any more, so
  /// that a change of the view takes no descriptor.
  Mesh(int rank, std::vector<LinkPtr> links,
       std::shared_ptr<EventFd> abort_event = std::make_shared<EventFd>());

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(links_.size()); }
  Link& link(int rank) { return *links_[static_cast<std::size_t>(rank)]; }

  /// `Link::begin` on every link.
  void begin(const OpTag& tag, const Fingerprint& fingerprint);
  /// `Link::abandon` on every link.
  void abandon();

  /// Calls `Link::progress` on every link. The first failure wins; kAborted after `abort`.
  Status progress(bool& moved);
  /// As `progress`, for a thread that waits in a library which does not report lost peers: now and
  /// then it also fails with kPeerLost if a peer has hung up. Call it only as long as no peer can
  /// have completed the operation.
  Status progress_and_check_peers();

  /// Progresses until `done()`: spins, then yields, then sleeps in poll(2) on all links and on the
  /// abort event. `done` is called before every round, so also at the start, and when a peer is
  /// lost. It has to be cheap. Once it returns true the wait has succeeded, even if a peer is lost.
  Status run_until(const std::function<bool()>& done);

  /// Spins and yields as `run_until` does, but without looking at the links, and for a moment only.
  /// \returns whether `done()` became true.
  template <typename Done>
  bool wait_briefly(const Done& done) {
    if (done()) return true;
    const bool came = spin(done) || yield_briefly(done);
    if (came) backoff_.waited();
    return came;
  }

  /// Sleeps until a link has something to say, `also_fd` (may be -1) is readable, or `abort`.
  Status wait(int also_fd = -1);

  /// Makes every present and future wait return kAborted. Any thread.
  void abort() noexcept;
  bool aborted() const noexcept { return aborted_.load(std::memory_order_acquire); }

 private:
  /// A round of `run_until` looks at all links: in its time memory can be looked at this often.
  static constexpr int kSpinsPerRound = 4;
  /// Enough for every rank of an oversubscribed host to have had its turn.
  static constexpr int kBriefYields = 16;

  template <typename Done>
  bool spin(const Done& done) const {
    for (int i = backoff_.spins() * kSpinsPerRound; i > 0; --i) {
      spin_pause();
      if (done()) return true;
    }
    for (const TimePoint end = migration_spin_end(); Clock::now() < end;) {
      spin_pause();
      if (done()) return true;
    }
    return false;
  }
  template <typename Done>
  bool yield_briefly(const Done& done) {
    for (int i = std::min(backoff_.yields(), kBriefYields); i > 0 && !aborted(); --i) {
      yield();
      if (done()) return true;
    }
    return false;
  }

  /// Until when to spin in this wait, however short the budget is.
  TimePoint migration_spin_end() const {
    return backoff_.migration_spin() ? Clock::now() + SpinBackoff::kMigrationSpin
                                     : TimePoint::min();
  }
  void yield();
  Status sleep();

  int rank_;
  std::vector<LinkPtr> links_;
  std::vector<pollfd> watched_;
  std::atomic<bool> aborted_{false};
  const std::shared_ptr<EventFd> abort_event_;
  SpinBackoff backoff_;
  unsigned looks_ = 0;
};

}  // namespace elastic::transport
