#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/transport/link.hpp"
#include "collectives/transport/linker_options.hpp"
#include "collectives/transport/peer.hpp"

namespace elastic::transport {

/// Makes and keeps the links of a worker. Listens for peers, dials them, authenticates both ways
/// (HMAC-SHA256 challenge over the job's secret, with both incarnations, lane and stream bound in)
/// before anything else is read, and drops strangers without harm. Where the job encrypts, TCP
/// connections go on under TLS then.
///
/// Between two workers the one with the greater incarnation string dials. Where it does not get
/// through, it asks the other members in turn to relay (TCP only): they pass the bytes on, and the
/// handshake and what is encrypted is between the two ends all the same. Links outlive a view:
/// `connect` hands out those that are still good and makes only the missing ones.
///
/// Composed of a LinkAcceptor, a LinkDialer, a LinkRelay, a LinkProbe and a PeerEndWatch.
/// Everything runs on the given io_context (the control thread); callbacks come on it too.
class Linker {
 public:
  /// Links to one peer, one per lane.
  using LinksOfPeer = std::vector<LinkPtr>;
  /// In the order of the peers asked for; or the first failure, with `peer()` its index.
  using Connected = std::function<void(Result<std::vector<LinksOfPeer>>)>;
  using Ended = std::function<void()>;
  /// Bytes per second.
  using Measured = std::function<void(Result<double>)>;

  Linker(boost::asio::io_context& io, LinkerOptions options);
  ~Linker();

  /// Opens the listeners. kUnavailable with the address and the reason if that fails.
  Status listen();
  const Endpoints& endpoints() const;

  /// Links with all of `peers`, the other members of the view `generation`; unused links to other
  /// workers are closed. One call at a time; a new call or `cancel` drops the earlier one's
  /// callback. Fails after `deadline`, and soon where links are missing for which this process has
  /// no descriptors. Handshakes of earlier generations are refused from now on.
  void connect(std::vector<Peer> peers, std::uint64_t generation, Milliseconds deadline,
               Connected callback);
  void cancel();

  /// Measures how fast bytes come over TCP from `peer`, which has a Linker of this job but need not
  /// be linked with: a second and a megabyte at most. One call at a time; a new one drops the
  /// earlier one's callback. Tries again while the peer is busy with others' measurements; fails
  /// after `deadline`.
  void probe(Peer peer, Milliseconds deadline, Measured callback);

  /// Calls `ended` when it is certain that the process of `peer` has ended: no process accepts its
  /// data connections any more. Looks again and again, for some seconds or until `forget_ends`.
  void watch_for_end(Peer peer, Ended ended);
  void forget_ends();

  /// Stops listening and forgets all links.
  void close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace elastic::transport
