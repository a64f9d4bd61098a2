// The part of the Linker that goes on under TLS where the job encrypts.
#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "base/tls_handshake.hpp"
#include "collectives/transport/linker_impl.hpp"
#include "collectives/transport/tcp/congestion.hpp"
#include "collectives/transport/tcp/tcp_stream.hpp"
#include "collectives/transport/tcp/tls_stream.hpp"

namespace elastic::transport {

namespace asio = boost::asio;

/// TLS's own handshake, where this connection is to be encrypted; null where it is not. The caller
/// has set a deadline.
Linker::Impl::Task<Result<TlsSessionPtr>> Linker::Impl::secure(Socket& socket,
                                                               const LinkGreeting& greeting,
                                                               TlsSession::Role role,
                                                               Result<SessionKey> session_key) {
  if (!options_.encrypt || !carries_data(greeting)) co_return TlsSessionPtr();
  if (!session_key.ok()) co_return session_key.status();
  co_return co_await shake_hands_of_tls(socket, role, session_key.value());
}

/// Receives at least a byte.
Linker::Impl::Task<Result<std::size_t>> Linker::Impl::receive(Conversation& with,
                                                              std::span<std::byte> into) {
  boost::system::error_code error;
  if (!with.tls) {
    const std::size_t bytes = co_await with.socket.async_read_some(
        asio::buffer(into.data(), into.size()), asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return Status(Code::kPeerLost, error.message());
    co_return bytes;
  }
  while (with.socket.is_open()) {
    Result<std::size_t> got = with.tls->open(into);
    if (!got.ok() || got.value() > 0) co_return got;
    co_await with.socket.async_wait(Socket::wait_read,
                                    asio::redirect_error(asio::use_awaitable, error));
  }
  co_return Status(Code::kPeerLost, "closed");
}

/// The stream over a connection that is through, or null if a deadline closed it in that moment.
StreamPtr Linker::Impl::tcp_stream(Conversation with) const {
  UniqueFd socket = take_descriptor(with.socket);
  if (!socket) return nullptr;
  const std::string congestion = options_.congestion.empty() && stays_on_host(socket.get())
                                     ? kLocalCongestionControl
                                     : options_.congestion;
  if (!congestion.empty()) {
    // `listen` has tried it; without it the connection is as good, if slower.
    const Status set = set_congestion_control(socket.get(), congestion);
    if (!set.ok()) log::debug("{}", set.message());
  }
  if (!with.tls) return std::make_unique<TcpStream>(std::move(socket), options_.link_timeout);
  return std::make_unique<TlsStream>(std::move(socket), std::move(with.tls), options_.link_timeout);
}

}  // namespace elastic::transport
