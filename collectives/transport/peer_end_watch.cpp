#include "collectives/transport/peer_end_watch.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/host_identity.hpp"
#include "collectives/transport/reach_peer.hpp"

namespace elastic::transport {

namespace asio = boost::asio;

namespace {

/// The kernel closes a process's descriptors one after the other.
constexpr std::chrono::microseconds kFirstBetweenLooks{100};
constexpr std::chrono::microseconds kLongestBetweenLooks{200000};
/// The server has decided by then.
constexpr Milliseconds kLookFor{10000};
constexpr Milliseconds kAnswerWithin{1000};

}  // namespace

PeerEndWatch::PeerEndWatch(std::shared_ptr<LinkerContext> context) : context_(std::move(context)) {}

void PeerEndWatch::watch(Peer peer, Ended ended) {
  context_->control_thread.check();
  asio::co_spawn(
      context_->io,
      [self = shared_from_this(), peer = std::move(peer), watch = watch_,
       ended = std::move(ended)] { return self->look_for_end(peer, watch, ended); },
      asio::detached);
}

Task<void> PeerEndWatch::look_for_end(Peer peer, std::uint64_t watch, Ended ended) {
  asio::steady_timer timer(context_->io);
  auto pause = kFirstBetweenLooks;
  const TimePoint until = Clock::now() + kLookFor;
  while (!context_->closed() && watch == watch_ && Clock::now() < until) {
    const bool gone = co_await has_ended(peer);
    if (context_->closed() || watch != watch_) co_return;
    if (gone) co_return ended();
    timer.expires_after(pause);
    pause = std::min(pause * 2, kLongestBetweenLooks);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

/// Each of its addresses has to refuse: an address such as a bridge's for containers may exist on
/// many machines, and the connection ends at another one.
Task<bool> PeerEndWatch::has_ended(const Peer& peer) {
  if (peer.endpoints.host == context_->host) co_return has_no_listener(peer.endpoints.local);
  bool refused = false;
  for (const std::string& address : peer.endpoints.tcp) {
    asio::ip::tcp::endpoint at;
    if (!parse_address(address, at) || at.address().is_loopback()) continue;
    DataSocket socket(context_->io);
    const SocketDeadline deadline(socket, kAnswerWithin, context_->sockets);
    boost::system::error_code error;
    socket.open(at.protocol(), error);
    if (error) co_return false;
    co_await socket.async_connect(at, asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::network_unreachable) continue;
    if (error != asio::error::connection_refused) co_return false;
    refused = true;
  }
  co_return refused;
}

}  // namespace elastic::transport
