#include "collectives/transport/link_acceptor.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unistd.h>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <sys/socket.h>

#include "base/asio_sockets.hpp"
#include "base/handshake.hpp"
#include "base/log.hpp"
#include "collectives/transport/tcp/congestion.hpp"
#include "collectives/transport/tcp/data_listener.hpp"

namespace elastic::transport {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

/// Until a connection's first bytes: a peer says them as soon as it is connected.
constexpr Milliseconds kFirstBytes{1000};

/// Every user of the machine can see the names of abstract sockets and connect. Peers are processes
/// of this user: see host_identity.
bool is_of_this_user(int local_socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(local_socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == ::geteuid();
}

/// Where a connection comes from, or nothing where it cannot be a peer's.
std::optional<std::string> origin(DataSocket& socket) {
  boost::system::error_code error;
  const auto peer = socket.remote_endpoint(error);
  if (error) return std::nullopt;
  if (peer.protocol().family() == AF_UNIX) {
    return is_of_this_user(socket.native_handle()) ? std::optional("this host") : std::nullopt;
  }
  tcp::endpoint address;
  std::memcpy(address.data(), peer.data(), std::min(peer.size(), address.capacity()));
  return origin_of(address.address());
}

}  // namespace

LinkAcceptor::LinkAcceptor(std::shared_ptr<LinkerContext> context, Sink& sink)
    : context_(std::move(context)), sink_(sink), tcp_(context_->io), local_(context_->io) {}

LinkAcceptor::Unauthenticated::Unauthenticated(UnauthenticatedSockets& among, std::string origin,
                                               DataSocket& socket)
    : among_(among) {
  const auto admission = among_.admitted.admit(std::move(origin));
  id_ = admission.admitted;
  among_.sockets.emplace(id_, &socket);
  if (!admission.displaced) return;
  const auto displaced = among_.sockets.find(*admission.displaced);
  boost::system::error_code ignored;
  displaced->second->close(ignored);
  among_.sockets.erase(displaced);
}

void LinkAcceptor::Unauthenticated::end() {
  among_.admitted.remove(id_);
  among_.sockets.erase(id_);
}

void LinkAcceptor::close() {
  boost::system::error_code ignored;
  tcp_.close(ignored);
  local_.close(ignored);
}

Status LinkAcceptor::listen() {
  endpoints_.host = context_->host;
  if (Status status = listen_tcp(); !status.ok()) return status;
  if (Status status = listen_local(); !status.ok()) return status;
  asio::co_spawn(
      context_->io,
      [self = shared_from_this()] { return self->accept_loop(self->tcp_, self->by_tcp_); },
      asio::detached);
  asio::co_spawn(
      context_->io,
      [self = shared_from_this()] { return self->accept_loop(self->local_, self->of_host_); },
      asio::detached);
  return {};
}

Status LinkAcceptor::listen_tcp() {
  auto told = open_data_listener(tcp_, context_->options);
  if (!told.ok()) return told.status();
  endpoints_.tcp = std::move(told).value();
  defer_accept(tcp_.native_handle());
  if (context_->options.congestion.empty()) return {};
  const Status set = set_congestion_control(tcp_.native_handle(), context_->options.congestion);
  return set.ok() ? set : set.within("ELASTIC_TCP_CONGESTION");
}

Status LinkAcceptor::listen_local() {
  endpoints_.local = "elastic-" + context_->options.incarnation;
  boost::system::error_code error;
  const asio::local::stream_protocol::endpoint endpoint(std::string(1, '\0') + endpoints_.local);
  open_socket(local_, endpoint.protocol(), error);
  if (!error) local_.bind(endpoint, error);
  if (!error) local_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) local_.native_non_blocking(true, error);
  if (!error) return {};
  return Status(Code::kUnavailable,
                "cannot listen on the local socket " + endpoints_.local + ": " + error.message());
}

template <typename Acceptor>
Task<void> LinkAcceptor::accept_loop(Acceptor& acceptor, UnauthenticatedSockets& among) {
  asio::steady_timer pause(context_->io);
  while (!context_->closed()) {
    boost::system::error_code error;
    DataSocket socket(context_->io);
    co_await accept_socket(acceptor, socket, error);
    if (!error) {
      if (std::optional<std::string> from = origin(socket)) {
        ++beginning_;
        asio::co_spawn(
            context_->io,
            [self = shared_from_this(), socket = std::move(socket), from = *std::move(from),
             &among]() mutable { return self->greet(std::move(socket), std::move(from), among); },
            asio::detached);
      }
      continue;
    }
    if (context_->closed() || error == asio::error::operation_aborted) co_return;
    // Out of descriptors, which passes.
    sink_.on_accept_failure();
    pause.expires_after(Milliseconds(20));
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
}

Task<void> LinkAcceptor::greet(DataSocket socket, std::string origin,
                               UnauthenticatedSockets& among) {
  --beginning_;
  if (context_->closed()) co_return;
  DataConnection with{std::move(socket), nullptr};
  Unauthenticated state(among, std::move(origin), with.socket);
  Result<LinkGreeting> greeting = co_await authenticate(with, state);
  state.end();
  if (context_->closed()) co_return;
  if (greeting.ok()) co_return sink_.on_connection(std::move(with), greeting.value());
  if (const auto note = refusal_lines_.admit(Clock::now())) {
    log::info("dropped a data connection: {}{}", greeting.status().message(), *note);
  }
}

Task<Result<LinkGreeting>> LinkAcceptor::authenticate(DataConnection& with,
                                                      Unauthenticated& state) {
  DataSocket& socket = with.socket;
  SocketDeadline deadline(socket, std::min(kFirstBytes, context_->options.handshake_deadline),
                          context_->sockets);
  const auto awaited = [](boost::system::error_code& error) {
    return asio::redirect_error(asio::use_awaitable, error);
  };
  const Status gone(Code::kPeerLost, "closed or too slow before it was authenticated");
  boost::system::error_code error;
  handshake::Acceptor acceptor(context_->options.secret, handshake::Purpose::kData,
                               context_->options.encrypt);

  std::array<std::byte, handshake::kHelloBytes> hello;
  co_await asio::async_read(socket, asio::buffer(hello), awaited(error));
  if (error) co_return gone;
  deadline.restart(context_->options.handshake_deadline);
  state.heard();
  Result<std::size_t> length = acceptor.hello(hello);
  if (!length.ok()) co_return length.status();
  std::vector<std::byte> context(length.value());
  co_await asio::async_read(socket, asio::buffer(context), awaited(error));
  if (error) co_return gone;
  const Result<std::vector<std::byte>> challenge = acceptor.challenge(context);
  if (!challenge.ok()) co_return challenge.status();
  co_await asio::async_write(socket, asio::buffer(challenge.value()), awaited(error));
  if (error) co_return gone;
  if (Status status = acceptor.agree(); !status.ok()) co_return status;
  std::array<std::byte, handshake::kProofBytes> proof;
  co_await asio::async_read(socket, asio::buffer(proof), awaited(error));
  if (error) co_return gone;
  if (Status status = acceptor.check(proof); !status.ok()) co_return status;
  state.end();

  Result<LinkGreeting> greeting = decode_greeting(acceptor.context());
  if (!greeting.ok()) co_return greeting;
  if (Status status = co_await admit(with, acceptor, greeting.value()); !status.ok()) {
    co_return status;
  }
  co_return greeting;
}

/// `from` has proved that it knows the secret. Sends it the verdict, except for a request to relay,
/// which the relay answers.
Task<Status> LinkAcceptor::admit(DataConnection& with, const handshake::Acceptor& acceptor,
                                 const LinkGreeting& from) {
  DataSocket& socket = with.socket;
  const auto awaited = [](boost::system::error_code& error) {
    return asio::redirect_error(asio::use_awaitable, error);
  };
  const Status gone(Code::kPeerLost, "closed or too slow while it was let in");
  boost::system::error_code error;
  if (from.job != context_->options.job || from.acceptor != context_->options.incarnation) {
    co_return Status(Code::kRefused, "a worker that looks for another one");
  }
  if (context_->closed()) co_return gone;
  if (!sink_.has_room()) co_return Status(Code::kUnavailable, "too many peers");
  const bool too_old = from.transport != kProbe && from.generation < generation_;
  if (!too_old && !from.target.empty()) co_return Status();  // the verdict is the target's, too
  const Verdict verdict = too_old ? Verdict::kOldGeneration : Verdict::kWelcome;
  co_await asio::async_write(socket, asio::buffer(&verdict, 1), awaited(error));
  if (error) co_return gone;
  if (too_old) co_return Status(Code::kRefused, "a worker that is still in an earlier view");
  if (from.transport == "shm") {
    co_await socket.async_wait(DataSocket::wait_read, awaited(error));
    if (error) co_return gone;
  }
  Result<TlsSessionPtr> secured = co_await secure(
      socket, from, TlsSession::Role::kAcceptor, acceptor.session_key(), context_->options.encrypt);
  if (!secured.ok()) co_return secured.status();
  with.tls = std::move(secured).value();
  co_return Status();
}

}  // namespace elastic::transport
