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

#include "base/asio_sockets.hpp"
#include "base/handshake.hpp"
#include "base/log.hpp"
#include "collectives/transport/flow_count.hpp"
#include "collectives/transport/linker_impl.hpp"
#include "collectives/transport/shm/shm.hpp"

namespace elastic::transport {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr Milliseconds kFirstPause{2};
constexpr Milliseconds kLongestPause{100};
/// How long only the direct way is tried: a peer that is there answers sooner. Also the limit for
/// every step on any way, where there are others.
constexpr Milliseconds kDirectOnly{700};

}  // namespace

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

/// Tries until the link stands, or is no longer wanted: directly at first, then also through
/// each of the other members in turn.
Linker::Impl::Task<void> Linker::Impl::dial(Peer peer, std::size_t lane) {
  const auto self = shared_from_this();
  const TimePoint start = Clock::now();
  Milliseconds pause = kFirstPause;
  asio::steady_timer timer(io_);
  std::size_t detours = 0;
  while (!closed_ && wanted(peer.incarnation) && !pool_.find(peer.incarnation, lane)) {
    const std::vector<Peer> relays = relays_to(peer);
    // The ways are 0, the direct one, and one through each relay.
    const std::size_t way =
        Clock::now() - start < kDirectOnly ? 0 : ++detours % (relays.size() + 1);
    const Peer* const relay = way == 0 ? nullptr : &relays[way - 1];
    const Milliseconds limit = relays.empty() ? options_.handshake_deadline : kDirectOnly;
    const Status dialled = co_await dial_once(peer, lane, relay, limit);
    if (dialled.ok()) break;
    // Why the direct way fails says more than why a detour does.
    if (relay == nullptr || !failures_.contains(peer.incarnation)) {
      failures_[peer.incarnation] = dialled;
    }
    log::debug("dialling worker {}: {}", peer.incarnation, dialled.message());
    hurry_without_descriptors();
    timer.expires_after(pause);
    pause = std::min(pause * 2, kLongestPause);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  dialing_.erase(peer.incarnation + "/" + std::to_string(lane));
  if (!closed_) finish_if_complete();
}

/// The members that could relay to `peer`. Shared memory cannot be relayed.
std::vector<Peer> Linker::Impl::relays_to(const Peer& peer) const {
  std::vector<Peer> found;
  if (transport_to(peer) == "shm") return found;
  for (const auto& [incarnation, member] : members_) {
    if (incarnation != peer.incarnation) found.push_back(member);
  }
  return found;
}

/// The acceptor takes as many as the dialer makes. A relay has few to give.
std::size_t Linker::Impl::streams_to(const Peer& peer, bool relayed) const {
  const auto on = [&](const std::string& host) {
    return static_cast<std::size_t>(
        std::count_if(members_.begin(), members_.end(),
                      [&](const auto& member) { return member.second.endpoints.host == host; }));
  };
  const std::string& there = peer.endpoints.host;
  if (transport_to(peer) == "shm") return 1;
  if (options_.streams > 0) return static_cast<std::size_t>(options_.streams);
  if (relayed || there == endpoints_.host) return 1;
  const std::size_t others_here = on(endpoints_.host);
  const auto lanes = static_cast<std::size_t>(options_.lanes);
  return flows_per_link({others_here + 1, on(there), (members_.size() - others_here) * lanes},
                        descriptor_limit());
}

/// `relay` is null for the direct way. `limit` is for each connection and each handshake.
Linker::Impl::Task<Status> Linker::Impl::dial_once(const Peer& peer, std::size_t lane,
                                                   const Peer* relay, Milliseconds limit) {
  LinkGreeting greeting;
  greeting.job = options_.job;
  greeting.dialer = options_.incarnation;
  greeting.acceptor = peer.incarnation;
  greeting.transport = transport_to(peer);
  greeting.link_id = random_id();
  greeting.lane = lane;
  greeting.generation = generation_;
  if (relay != nullptr) greeting.via = relay->incarnation;
  const bool shm = greeting.transport == "shm";
  greeting.streams = streams_to(peer, relay != nullptr);
  for (; greeting.stream < greeting.streams; ++greeting.stream) {
    Result<Conversation> through = co_await get_through(peer, greeting, relay, limit);
    if (!through.ok()) co_return through.status();
    if (closed_) co_return Status(Code::kAborted, "closed");
    StreamPtr stream;
    if (!shm) {
      stream = tcp_stream(std::move(through).value());
    } else {
      Result<StreamPtr> shared = co_await share_memory(through.value().socket, limit);
      if (!shared.ok()) co_return shared.status();
      if (closed_) co_return Status(Code::kAborted, "closed");
      stream = std::move(shared).value();
    }
    pool_.add({peer.incarnation, lane, greeting.link_id, greeting.stream, greeting.streams,
               greeting.via, std::move(stream)});
  }
  co_return Status();
}

Linker::Impl::Task<Result<StreamPtr>> Linker::Impl::share_memory(Socket& socket,
                                                                 Milliseconds limit) {
  const Status late(Code::kTimeout, "the handshake took too long");
  if (!socket.is_open()) co_return late;
  auto memory = offer_shm(socket.native_handle(), options_.shm_ring_bytes, options_.arena.get());
  if (!memory.ok()) co_return memory.status();
  {
    const SocketDeadline deadline(socket, limit, open_);
    boost::system::error_code error;
    co_await socket.async_wait(Socket::wait_read, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return late;
  }
  UniqueFd fd = take_descriptor(socket);
  if (!fd) co_return late;
  co_return conclude_shm(std::move(fd), std::move(memory).value());
}

Linker::Impl::Task<Result<Linker::Impl::Conversation>> Linker::Impl::get_through(
    const Peer& peer, LinkGreeting greeting, const Peer* relay, Milliseconds limit) {
  Result<Socket> reached =
      co_await reach(relay == nullptr ? peer : *relay, greeting.transport, limit);
  if (!reached.ok()) co_return reached.status();
  Conversation with{std::move(reached).value(), nullptr};
  if (relay != nullptr) {
    LinkGreeting request = greeting;
    request.acceptor = relay->incarnation;
    request.target = peer.incarnation;
    request.via.clear();
    // The relay has to connect, too.
    const Status granted = co_await introduce(with, request, 2 * limit);
    if (!granted.ok()) {
      co_return granted.within("asked worker " + relay->incarnation.substr(0, 8) + " to relay");
    }
  }
  if (Status status = co_await introduce(with, greeting, limit); !status.ok()) co_return status;
  co_return std::move(with);
}

/// The addresses of `peer` share `limit`: one that is silent must not hide the next.
Linker::Impl::Task<Result<Linker::Impl::Socket>> Linker::Impl::reach(const Peer& peer,
                                                                     const std::string& transport,
                                                                     Milliseconds limit) {
  boost::system::error_code error;
  if (transport == "shm") {
    asio::local::stream_protocol::socket socket(io_);
    const asio::local::stream_protocol::endpoint at(std::string(1, '\0') + peer.endpoints.local);
    open_socket(socket, at.protocol(), error);
    if (!error) {
      co_await socket.async_connect(at, asio::redirect_error(asio::use_awaitable, error));
    }
    if (!error) co_return Socket(std::move(socket));
    co_return Status(Code::kUnavailable,
                     "local socket " + peer.endpoints.local + ": " + error.message());
  }
  std::string tried;
  const auto addresses = static_cast<int>(std::max<std::size_t>(peer.endpoints.tcp.size(), 1));
  for (const std::string& address : peer.endpoints.tcp) {
    tcp::endpoint at;
    if (!parse_address(address, at)) continue;
    Socket socket(io_);
    open_socket(socket, asio::generic::stream_protocol(at.protocol()), error);
    const SocketDeadline deadline(socket, limit / addresses, open_);
    if (!error) {
      co_await socket.async_connect(at, asio::redirect_error(asio::use_awaitable, error));
    }
    if (!error) co_return std::move(socket);
    tried += (tried.empty() ? "" : "; ") + address + ": " + error.message();
  }
  co_return Status(Code::kUnavailable, tried.empty() ? "no address to dial" : tried);
}

Linker::Impl::Task<Status> Linker::Impl::introduce(Conversation& with, const LinkGreeting& greeting,
                                                   Milliseconds limit) {
  Socket& socket = with.socket;
  const SocketDeadline deadline(socket, limit, open_);
  boost::system::error_code error;
  const auto awaited = [](boost::system::error_code& into) {
    return asio::redirect_error(asio::use_awaitable, into);
  };
  const handshake::Dialer dialer(options_.secret, handshake::Purpose::kData, encode(greeting),
                                 options_.encrypt);
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
  Verdict verdict{};
  co_await asio::async_read(socket, asio::buffer(&verdict, 1), awaited(error));
  if (error) co_return gone;
  if (Status status = judge(verdict); !status.ok()) co_return status;
  Result<TlsSessionPtr> secured =
      co_await secure(socket, greeting, TlsSession::Role::kDialer, dialer.session_key(challenge));
  if (!secured.ok()) co_return secured.status();
  with.tls = std::move(secured).value();
  co_return Status();
}

}  // namespace elastic::transport
