#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/transport/byte_count.hpp"
#include "collectives/transport/link.hpp"
#include "collectives/transport/link_source.hpp"
#include "collectives/transport/linker_options.hpp"
#include "collectives/transport/peer.hpp"

namespace elastic::transport {

/// Makes and keeps the links of a worker. Listens for peers, dials them, authenticates both ways
/// (HMAC-SHA256 challenge over the job's secret, with both incarnations, lane and stream bound in)
/// before anything else is read, and drops other peers without harm. If the job encrypts, TLS
/// follows on TCP connections.
///
/// Between two workers, the one with the greater incarnation string dials. If it cannot reach the
/// other, it asks the other members in turn to relay (TCP only). A relay passes the bytes on;
/// handshake and encryption remain between the two ends. Links outlive a view: `connect` hands out
/// those that still work, and makes only the missing ones.
///
/// Composed of a LinkAcceptor, a LinkDialer, a LinkPool, a LinkRelay, a LinkProbe and a
/// PeerEndWatch. Everything runs on the given io_context (the control thread); callbacks come on it
/// too.
class Linker {
 public:
  /// Links to one peer, one per lane.
  using LinksOfPeer = std::vector<LinkPtr>;
  /// The links in the order of `peers`, none for those that are not linked at once, or the first
  /// failure: its `peer()` is an index into `peers`.
  using Connected = std::function<void(Result<std::vector<LinksOfPeer>>)>;
  using Ended = std::function<void()>;
  /// Bytes per second.
  using Measured = std::function<void(Result<double>)>;

  Linker(boost::asio::io_context& io, LinkerOptions options);
  ~Linker();

  /// Opens the listeners. kUnavailable with the address and the reason if that fails.
  Status listen();
  const Endpoints& endpoints() const;

  /// Links with those of `peers`, the other members of the view `generation`, that are to be linked
  /// at once, and closes unused links to workers that are no members. One call at a time: a new
  /// call or `cancel` drops the callback of the earlier one. Fails with the peer when a missing
  /// link has come no further for `deadline`, and sooner with kUnavailable, without a peer, if this
  /// process lacks descriptors for the missing links. From now on refuses handshakes of earlier
  /// generations.
  void connect(std::vector<Peer> peers, std::uint64_t generation, Milliseconds deadline,
               Connected callback);
  void cancel();

  /// Gives the links of one lane with members of the view `generation`, by their ranks, to which
  /// `connect` gave none. Both ends have to ask for a link: the one that dials fails after
  /// `deadline`, the other one waits for it. Ends with the next `connect` or `cancel`.
  std::shared_ptr<LinkSource> source(std::vector<std::string> incarnations, std::size_t lane,
                                     std::uint64_t generation, Milliseconds deadline);

  /// Measures how fast bytes come over TCP from `peer`, a worker of this job; it needs no link to
  /// this worker. Takes at most a megabyte and a second. One call at a time: a new call drops the
  /// callback of the earlier one. Tries again while the peer serves other measurements, and fails
  /// after `deadline`.
  void probe(Peer peer, Milliseconds deadline, Measured callback);

  /// Calls `ended` when it is certain that the process of `peer` has ended: no process accepts its
  /// data connections any more. Looks again and again, for some seconds or until `forget_ends`.
  void watch_for_end(Peer peer, Ended ended);
  void forget_ends();

  /// The bytes of all links that it has made.
  LinkTraffic traffic();

  /// Stops listening and forgets all links.
  void close();

 private:
  class Impl;
  class Source;
  std::shared_ptr<Impl> impl_;
};

}  // namespace elastic::transport
