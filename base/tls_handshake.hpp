#pragma once

#include <memory>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/handshake.hpp"
#include "base/status.hpp"
#include "base/tls_session.hpp"

namespace elastic {

/// TLS's own handshake on a connected stream socket of Asio's. Its ends have authenticated each
/// other. The caller has set a deadline, which closes the socket.
///
/// kPeerLost: the connection was closed, broke, or carried damaged data. Nothing else can be wrong
/// with a peer that has the secret, so another connection may work. kInternal: TLS fails on this
/// machine.
template <typename Socket>
boost::asio::awaitable<Result<TlsSessionPtr>> shake_hands_of_tls(Socket& socket,
                                                                 TlsSession::Role role,
                                                                 SessionKey session_key) {
  namespace asio = boost::asio;
  auto session = std::make_unique<TlsSession>(socket.native_handle(), role, session_key);
  boost::system::error_code error;
  const auto awaited = [&error] { return asio::redirect_error(asio::use_awaitable, error); };
  while (!error && socket.is_open()) {
    const Result<bool> done = session->handshake();
    const auto answer = session->sealed();
    const std::size_t sent =
        co_await asio::async_write(socket, asio::buffer(answer.data(), answer.size()), awaited());
    session->sent(sent);
    if (!done.ok()) {
      const bool here = done.status().code() == Code::kInternal;
      co_return Status(here ? Code::kInternal : Code::kPeerLost, done.status().message());
    }
    if (error || !socket.is_open()) break;
    if (done.value()) co_return std::move(session);
    co_await socket.async_wait(Socket::wait_read, awaited());
  }
  co_return Status(Code::kPeerLost, "closed or too slow in the handshake of TLS");
}

}  // namespace elastic
