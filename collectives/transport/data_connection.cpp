#include "collectives/transport/data_connection.hpp"

#include <string>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "base/tls_handshake.hpp"
#include "collectives/transport/tcp/congestion.hpp"
#include "collectives/transport/tcp/tcp_stream.hpp"
#include "collectives/transport/tcp/tls_stream.hpp"

namespace elastic::transport {

namespace asio = boost::asio;

void OpenSockets::close() {
  closed_ = true;
  boost::system::error_code ignored;
  for (DataSocket* socket : sockets_) socket->close(ignored);
}

SocketDeadline::SocketDeadline(DataSocket& socket, Milliseconds deadline, OpenSockets& open)
    : socket_(socket),
      open_(open),
      timer_(socket.get_executor()),
      alive_(std::make_shared<char>()) {
  open_.add(socket_);
  restart(deadline);
}

void SocketDeadline::restart(Milliseconds deadline) {
  timer_.expires_after(deadline);
  timer_.async_wait(
      [&socket = socket_, alive = std::weak_ptr(alive_)](boost::system::error_code error) {
        boost::system::error_code ignored;
        if (!error && !alive.expired()) socket.close(ignored);
      });
}

SocketDeadline::~SocketDeadline() {
  open_.remove(socket_);
}

UniqueFd take_descriptor(DataSocket& socket) {
  boost::system::error_code error;
  const int descriptor = socket.release(error);
  return UniqueFd(error ? -1 : descriptor);
}

asio::awaitable<Result<TlsSessionPtr>> secure(DataSocket& socket, const LinkGreeting& greeting,
                                              TlsSession::Role role, Result<SessionKey> session_key,
                                              bool encrypt) {
  if (!encrypt || !carries_data(greeting)) co_return TlsSessionPtr();
  if (!session_key.ok()) co_return session_key.status();
  co_return co_await shake_hands_of_tls(socket, role, session_key.value());
}

asio::awaitable<Result<std::size_t>> receive(DataConnection& from, std::span<std::byte> into) {
  boost::system::error_code error;
  if (!from.tls) {
    const std::size_t bytes = co_await from.socket.async_read_some(
        asio::buffer(into.data(), into.size()), asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return Status(Code::kPeerLost, error.message());
    co_return bytes;
  }
  while (from.socket.is_open()) {
    Result<std::size_t> got = from.tls->open(into);
    if (!got.ok() || got.value() > 0) co_return got;
    co_await from.socket.async_wait(DataSocket::wait_read,
                                    asio::redirect_error(asio::use_awaitable, error));
  }
  co_return Status(Code::kPeerLost, "closed");
}

StreamPtr tcp_stream(DataConnection from, const LinkerOptions& options) {
  UniqueFd socket = take_descriptor(from.socket);
  if (!socket) return nullptr;
  const std::string congestion = options.congestion.empty() && stays_on_host(socket.get())
                                     ? kLocalCongestionControl
                                     : options.congestion;
  if (!congestion.empty()) {
    // The listener has tried it; without it the connection is as good, if slower.
    const Status set = set_congestion_control(socket.get(), congestion);
    if (!set.ok()) log::debug("{}", set.message());
  }
  if (!from.tls) return std::make_unique<TcpStream>(std::move(socket), options.link_timeout);
  return std::make_unique<TlsStream>(std::move(socket), std::move(from.tls), options.link_timeout);
}

}  // namespace elastic::transport
