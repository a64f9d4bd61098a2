#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <poll.h>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "base/status.hpp"
#include "collectives/transport/flow_threads.hpp"
#include "collectives/transport/link.hpp"
#include "collectives/transport/link_source.hpp"
#include "collectives/transport/spin_backoff.hpp"
#include "collectives/transport/spin_pause.hpp"

namespace elastic::transport {

/// The links of one worker to the other members of a view, for one lane, and the one place where a
/// thread waits for them. In a large view some links are missing at first, and are made by
/// `require` when an operation needs them.
///
/// Owned by the thread that runs the lane's operation, but for `abort`, which any thread may call.
class Mesh {
 public:
  /// `links[r]` leads to rank r; links[rank] is null, and so are those that `source` gives when
  /// they are required. `abort_event` wakes the thread that waits here, and is cleared: it can be
  /// that of an earlier mesh in which no thread waits any more, so that a change of the view takes
  /// no descriptor. `threads` is for operations over links with several flows.
  Mesh(int rank, std::vector<LinkPtr> links,
       std::shared_ptr<EventFd> abort_event = std::make_shared<EventFd>(),
       std::shared_ptr<LinkSource> source = nullptr, const ThreadUse& threads = {});
  /// The links with some ranks of `whole`, which has them all and outlives this mesh. `ranks` are
  /// in ascending order, with this one among them; here they are numbered from 0. Failures name
  /// peers by their ranks in `whole`, and `abort` of `whole` is one here, too.
  Mesh(Mesh& whole, std::span<const int> ranks);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(links_.size()); }
  /// The rank has to have one: see `has_link`.
  Link& link(int rank) { return *links_[static_cast<std::size_t>(rank)]; }
  bool has_link(int rank) const { return links_[static_cast<std::size_t>(rank)] != nullptr; }
  /// Whether there is a link with every other rank.
  bool has_all_links() const { return linked_.size() + 1 == links_.size(); }
  /// Waits until there are links with all of `ranks`, and makes the missing ones, within the
  /// operation that has begun. These ranks have to require theirs with this one.
  Status require(std::span<const int> ranks);

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
  /// `bytes` are about to be sent: if they are many, FlowThreads help.
  Status run_until(const std::function<bool()>& done, std::size_t bytes = 0);

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
  bool aborted() const noexcept { return aborted_->load(std::memory_order_acquire); }

 private:
  /// A round of `run_until` looks at all links: in its time memory can be looked at this often.
  static constexpr int kSpinsPerRound = 4;
  /// Enough for every rank of an oversubscribed host to have had its turn.
  static constexpr int kBriefYields = 16;
  /// `run_until` looks in one round of so many at links with nothing posted. Messages there are
  /// for later, and every look is a cache line of the peer or a system call.
  static constexpr unsigned kRoundsPerLook = 16;

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
      backoff_.yield();
      if (done()) return true;
    }
    return false;
  }

  /// Until when to spin in this wait, however short the budget is.
  TimePoint migration_spin_end() const {
    return backoff_.migration_spin() ? Clock::now() + SpinBackoff::kMigrationSpin
                                     : TimePoint::min();
  }
  /// The links that the source has given, and its failures. The mesh may be gone when they arrive.
  struct Arrivals {
    Mutex mutex;
    std::vector<std::pair<int, Result<LinkPtr>>> arrived ELASTIC_GUARDED_BY(mutex);
  };

  Status check() const;
  Status progress_posted(bool& moved);
  Status run_rounds(const std::function<bool()>& done);
  Status run_shared(const std::function<bool()>& done, std::vector<LinkPtr> links);
  bool has_threads();
  std::vector<LinkPtr> links_to_lend() const;
  bool lent() const { return threads_ != nullptr && threads_->on_loan(); }
  void request(int rank);
  Status take_arrivals();
  void add(int rank, LinkPtr link);
  Status sleep();

  int rank_;
  std::vector<LinkPtr> links_;   // by rank
  std::vector<LinkPtr> linked_;  // those that are there
  const std::shared_ptr<LinkSource> source_;
  const std::shared_ptr<Arrivals> arrivals_ = std::make_shared<Arrivals>();
  std::vector<int> requested_;  // ranks with links that have not arrived
  OpTag tag_{};                 // of the operation that has begun
  Fingerprint fingerprint_{};
  std::vector<pollfd> watched_;
  const std::shared_ptr<std::atomic<bool>> aborted_;  // shared by meshes of the same links
  const std::shared_ptr<EventFd> abort_event_;
  const ThreadUse thread_use_;
  std::unique_ptr<FlowThreads> threads_;  // null: not needed so far
  std::uint64_t told_ = 0;                // by the threads, when a round began
  SpinBackoff backoff_;
  unsigned rounds_ = 0;  // of `run_until` since the last look at all links
  unsigned looks_ = 0;
};

}  // namespace elastic::transport
