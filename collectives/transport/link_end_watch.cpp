// Finding out that a peer's process has ended, without a link to it.
//
// The kernel closes a process's listeners with it, and a machine refuses connections to a port
// without a listener. Links tell less: a network that resets connections resets them, too.
#include <algorithm>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/host_identity.hpp"
#include "collectives/transport/linker_impl.hpp"

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

void Linker::Impl::watch_for_end(Peer peer, Ended ended) {
  control_thread_.check();
  asio::co_spawn(io_, look_for_end(std::move(peer), end_watches_, std::move(ended)),
                 asio::detached);
}

Linker::Impl::Task<void> Linker::Impl::look_for_end(Peer peer, std::uint64_t watch, Ended ended) {
  const auto self = shared_from_this();
  asio::steady_timer timer(io_);
  auto pause = kFirstBetweenLooks;
  const TimePoint until = Clock::now() + kLookFor;
  while (!closed_ && watch == end_watches_ && Clock::now() < until) {
    const bool gone = co_await has_ended(peer);
    if (closed_ || watch != end_watches_) co_return;
    if (gone) co_return ended();
    timer.expires_after(pause);
    pause = std::min(pause * 2, kLongestBetweenLooks);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

/// Each of its addresses has to refuse: an address such as a bridge's for containers may exist on
/// many machines, and the connection ends at another one.
Linker::Impl::Task<bool> Linker::Impl::has_ended(const Peer& peer) {
  if (peer.endpoints.host == endpoints_.host) co_return nobody_listens(peer.endpoints.local);
  bool refused = false;
  for (const std::string& address : peer.endpoints.tcp) {
    asio::ip::tcp::endpoint at;
    if (!parse_address(address, at) || at.address().is_loopback()) continue;
    Socket socket(io_);
    const SocketDeadline deadline(socket, kAnswerWithin, open_);
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
