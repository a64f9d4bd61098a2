// The half of the Linker that dials.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/handshake.hpp"
#include "base/log.hpp"
#include "collectives/transport/linker_impl.hpp"
#include "collectives/transport/shm/shm.hpp"
#include "collectives/transport/tcp/tcp_stream.hpp"

namespace elastic::transport {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr Milliseconds kFirstPause{2};
constexpr Milliseconds kLongestPause{100};

/// "1.2.3.4:5" or "[::1]:5".
bool parse_address(const std::string& text, tcp::endpoint& endpoint) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  unsigned short port = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data() + colon + 1, end, port).ptr != end) return false;
  boost::system::error_code error;
  endpoint = tcp::endpoint(asio::ip::make_address(host, error), port);
  return !error;
}

}  // namespace

/// Tries until the link stands, or nobody wants it any more.
Linker::Impl::Task<void> Linker::Impl::dial(Peer peer, std::size_t lane) {
  const auto self = shared_from_this();
  Milliseconds pause = kFirstPause;
  asio::steady_timer timer(io_);
  while (!closed_ && wanted(peer.incarnation) && !pool_.find(peer.incarnation, lane)) {
    const Status dialled = co_await dial_once(peer, lane);
    if (dialled.ok()) break;
    failures_[peer.incarnation] = dialled;
    log::get().debug("dialling worker {}: {}", peer.incarnation, dialled.message());
    timer.expires_after(pause);
    pause = std::min(pause * 2, kLongestPause);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  dialing_.erase(peer.incarnation + "/" + std::to_string(lane));
  if (!closed_) finish_if_complete();
}

Linker::Impl::Task<Status> Linker::Impl::dial_once(const Peer& peer, std::size_t lane) {
  LinkGreeting greeting;
  greeting.job = options_.job;
  greeting.dialer = options_.incarnation;
  greeting.acceptor = peer.incarnation;
  greeting.transport = transport_to(peer);
  greeting.link_id = random_id();
  greeting.lane = lane;
  const bool shm = greeting.transport == "shm";
  greeting.streams = shm ? 1 : static_cast<std::size_t>(options_.streams);
  for (; greeting.stream < greeting.streams; ++greeting.stream) {
    Result<Socket> reached = co_await reach(peer, greeting.transport);
    if (!reached.ok()) co_return reached.status();
    Socket socket = std::move(reached).value();
    if (Status status = co_await introduce(socket, greeting); !status.ok()) co_return status;
    if (closed_) co_return Status(Code::kAborted, "closed");
    UniqueFd fd = take_descriptor(socket);
    if (!fd) co_return Status(Code::kTimeout, "the handshake took too long");
    StreamPtr stream;
    if (shm) {
      Result<StreamPtr> offered = offer_shm(std::move(fd), options_.shm_ring_bytes);
      if (!offered.ok()) co_return offered.status();
      stream = std::move(offered).value();
    } else {
      stream = std::make_unique<TcpStream>(std::move(fd), options_.link_timeout);
    }
    pool_.add({peer.incarnation, lane, greeting.link_id, greeting.stream, greeting.streams,
               std::move(stream)});
  }
  co_return Status();
}

Linker::Impl::Task<Result<Linker::Impl::Socket>> Linker::Impl::reach(const Peer& peer,
                                                                     const std::string& transport) {
  boost::system::error_code error;
  if (transport == "shm") {
    asio::local::stream_protocol::socket socket(io_);
    const asio::local::stream_protocol::endpoint at(std::string(1, '\0') + peer.endpoints.local);
    co_await socket.async_connect(at, asio::redirect_error(asio::use_awaitable, error));
    if (!error) co_return Socket(std::move(socket));
    co_return Status(Code::kUnavailable,
                     "local socket " + peer.endpoints.local + ": " + error.message());
  }
  std::string tried;
  for (const std::string& address : peer.endpoints.tcp) {
    tcp::endpoint at;
    if (!parse_address(address, at)) continue;
    Socket socket(io_);
    socket.open(asio::generic::stream_protocol(at.protocol()), error);
    const SocketDeadline deadline(socket, options_.handshake_deadline / 2, greeting_);
    if (!error) {
      co_await socket.async_connect(at, asio::redirect_error(asio::use_awaitable, error));
    }
    if (!error) co_return std::move(socket);
    tried += (tried.empty() ? "" : "; ") + address + ": " + error.message();
  }
  co_return Status(Code::kUnavailable, tried.empty() ? "no address to dial" : tried);
}

Linker::Impl::Task<Status> Linker::Impl::introduce(Socket& socket, const LinkGreeting& greeting) {
  const SocketDeadline deadline(socket, options_.handshake_deadline, greeting_);
  boost::system::error_code error;
  const auto awaited = [](boost::system::error_code& into) {
    return asio::redirect_error(asio::use_awaitable, into);
  };
  const handshake::Dialer dialer(options_.secret, handshake::Purpose::kData, encode(greeting));
  const Status gone(Code::kPeerLost, "it closed the connection in the handshake");

  const std::vector<std::byte> hello = dialer.hello();
  co_await asio::async_write(socket, asio::buffer(hello), awaited(error));
  if (error) co_return gone;
  std::array<std::byte, handshake::kChallengeBytes> challenge;
  co_await asio::async_read(socket, asio::buffer(challenge), awaited(error));
  if (error) co_return gone;
  Result<std::vector<std::byte>> proof = dialer.answer(challenge);
  if (!proof.ok()) co_return proof.status();
  co_await asio::async_write(socket, asio::buffer(proof.value()), awaited(error));
  if (error) co_return gone;
  std::array<std::byte, handshake::kVerdictBytes> verdict;
  co_await asio::async_read(socket, asio::buffer(verdict), awaited(error));
  if (error) co_return gone;
  co_return handshake::Dialer::finish(verdict);
}

}  // namespace elastic::transport
