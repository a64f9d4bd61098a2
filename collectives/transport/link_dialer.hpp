#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/transport/data_connection.hpp"
#include "collectives/transport/link_greeting.hpp"
#include "collectives/transport/link_pool.hpp"
#include "collectives/transport/linker_context.hpp"
#include "collectives/transport/peer.hpp"

namespace elastic::transport {

/// Bytes of the rings of a link in shared memory where `workers` share a host: `bytes` for up to 16
/// of them, and less in proportion for more, which have more links.
std::size_t ring_bytes_among(std::size_t workers, std::size_t bytes);

/// The half of a Linker that dials: makes the links to the peers with smaller incarnations, and
/// puts their streams into the pool. Dials a peer directly at first, then also through relays.
///
/// Belongs to the control thread. A coroutine that it spawns keeps it alive, also before the
/// coroutine begins.
class LinkDialer : public std::enable_shared_from_this<LinkDialer> {
 public:
  /// Hears how the dials go. Called on the control thread, and not after the context is closed.
  class Observer {
   public:
    virtual ~Observer() = default;
    /// A link is complete, or no longer wanted.
    virtual void on_dial_end() = 0;
    /// A try has failed, perhaps for lack of descriptors; another follows.
    virtual void on_dial_failure() = 0;
  };

  /// `observer` must live until the context is closed.
  LinkDialer(std::shared_ptr<LinkerContext> context, std::shared_ptr<LinkPool> pool,
             Observer& observer);

  /// `peers` are the other members from now on, of the view `generation`.
  void enter(const std::vector<Peer>& peers, std::uint64_t generation);
  /// Makes the missing links to those of them that are to be linked at once. Skips peers with
  /// greater incarnations, which dial this worker. Tries until all links are made, or until
  /// `cancel`.
  void dial(const std::vector<Peer>& peers);
  /// Makes the link of one lane to one of these members, too.
  void dial(const Peer& peer, std::size_t lane);
  /// Descriptors for those links to be made at once that are not there yet, however they come, and
  /// for links with all members.
  std::size_t descriptors_missing() const;
  std::size_t descriptors_for_all() const;
  /// Whether this worker is the one of the two that dials.
  bool dials(const Peer& peer) const { return context_->options.incarnation >= peer.incarnation; }
  /// Dials under way end before their next try.
  void cancel() { wanted_ = false; }
  /// Why the last try to reach `incarnation` since the last `enter` failed; null if none did.
  const Status* failure(const std::string& incarnation) const;

 private:
  Task<void> keep_dialing(Peer peer, std::size_t lane);
  Task<Status> dial_once(const Peer& peer, std::size_t lane, const Peer* relay, Milliseconds limit);
  Task<Result<DataConnection>> get_through(const Peer& peer, LinkGreeting greeting,
                                           const Peer* relay, Milliseconds limit);
  Task<Result<StreamPtr>> share_memory(DataSocket& socket, Milliseconds limit);
  bool wanted(const std::string& incarnation) const;
  std::string transport_to(const Peer& peer) const;
  std::vector<Peer> relays_to(const Peer& peer) const;
  std::size_t descriptors_to(const Peer& peer) const;
  std::size_t members_on(const std::string& host) const;
  std::size_t lanes() const { return static_cast<std::size_t>(context_->options.lanes); }
  std::size_t streams_to(const Peer& peer, bool relayed) const;

  const std::shared_ptr<LinkerContext> context_;
  const std::shared_ptr<LinkPool> pool_;
  Observer& observer_;

  // The last call of `enter`.
  std::map<std::string, Peer> members_;
  std::uint64_t generation_ = 0;
  bool wanted_ = false;
  std::map<std::string, Status> failures_;  // the last one of each peer

  std::set<std::string> dialing_;  // peer and lane
};

}  // namespace elastic::transport
