#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "collectives/transport/byte_count.hpp"
#include "collectives/transport/link.hpp"
#include "collectives/transport/stream.hpp"

namespace elastic::transport {

/// The links that a worker has, per peer and lane, and the streams of those that are not whole yet.
/// Owned by the control thread.
class LinkPool {
 public:
  explicit LinkPool(int lanes) : lanes_(static_cast<std::size_t>(lanes)) {}

  /// One stream of a link has been made. All streams of one link carry the same `link_id`; one of a
  /// newer link replaces what was there, and ends it: the peer has given it up, which may be
  /// unknown here where the network just went silent.
  struct Arrival {
    std::string peer;
    std::size_t lane = 0;
    std::string link_id;
    std::size_t stream = 0;
    std::size_t streams = 1;
    std::string via;               ///< the worker that relays it; or empty
    std::uint64_t generation = 0;  ///< of the view for which it was made
    StreamPtr carrier;
  };
  void add(Arrival arrival);

  /// The usable link, or null.
  LinkPtr find(const std::string& peer, std::size_t lane) const;
  bool complete(const std::string& peer) const;
  /// The streams that are there of a link that is not whole yet.
  std::size_t streams(const std::string& peer, std::size_t lane) const;
  /// When the links to `peer` last came further than they had been since the last `keep_only`;
  /// TimePoint::min() if they did not.
  TimePoint progress(const std::string& peer) const;
  /// The links of one peer that is `complete`, to be used in the present view.
  std::vector<LinkPtr> hand_out(const std::string& peer);
  /// The link of one lane, which `find` finds.
  LinkPtr hand_out(const std::string& peer, std::size_t lane);

  /// Forgets workers that are not in `peers`, except workers with links that arrived after the last
  /// call and were not handed out: they may be of the next view. Links through a relay that is not
  /// in `peers` end, on both sides alike: it would not be noticed if that worker merely stopped.
  void keep_only(const std::set<std::string>& peers);
  /// Forgets links that broke or whose peer has hung up. That closes our end, too, and the peer
  /// learns that it has to make a new one.
  void drop_dead();
  void drop_dead(const std::string& peer);
  /// Ends the links to `peer` that were made for views before `generation`, and those that were
  /// handed out; newer ones stay.
  void drop_old(const std::string& peer, std::uint64_t generation);
  void clear() { slots_.clear(); }
  /// The bytes of all links that have been here, also of those that are gone.
  LinkTraffic traffic();
  /// The descriptors of all links that live, also of those that only a view still uses.
  std::size_t descriptors() const;
  std::size_t peers() const { return slots_.size(); }

 private:
  struct Slot {
    LinkPtr link;
    std::string link_id;
    std::string via;
    std::uint64_t generation = 0;    // of the view for which it was made
    bool used = false;               // handed out
    std::size_t most = 0;            // streams at a time since the last keep_only
    std::vector<StreamPtr> streams;  // of a link that is not whole
  };
  struct PeerSlots {
    std::vector<Slot> lanes;
    bool fresh = true;  // arrived after the last keep_only, and not handed out
    TimePoint progress = TimePoint::min();
  };

  /// The count of a link, which outlives it.
  struct Counted {
    bool shm = false;
    std::size_t streams = 0;
    std::shared_ptr<const ByteCount> count;
  };

  std::size_t lanes_;
  std::map<std::string, PeerSlots> slots_;
  std::vector<Counted> counted_;
  LinkTraffic ended_;  // of links that are gone
};

}  // namespace elastic::transport
