#pragma once

#include <cerrno>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <sys/socket.h>

#include "base/process_mark.hpp"
#include "base/unique_fd.hpp"

namespace elastic {

/// Asio opens and accepts sockets without SOCK_CLOEXEC, and has no option for it, so that every
/// program that this process starts would inherit them. All sockets of the library are made here
/// instead, closed in children of exec(2) and fork(2).

/// Hands `fd`, a fresh socket, to `socket`.
template <typename Socket>
void adopt_socket(Socket& socket, const typename Socket::protocol_type& protocol, UniqueFd fd,
                  boost::system::error_code& error) {
  close_in_children(fd.get());
  socket.assign(protocol, fd.get(), error);
  if (!error) fd.release();
}

/// In place of `socket.open(protocol, error)`; for acceptors, too.
template <typename Socket>
void open_socket(Socket& socket, const typename Socket::protocol_type& protocol,
                 boost::system::error_code& error) {
  UniqueFd fd(::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol()));
  if (!fd) {
    error.assign(errno, boost::system::system_category());
    return;
  }
  adopt_socket(socket, protocol, std::move(fd), error);
}

/// In place of `acceptor.async_accept(socket, ...)`. The acceptor must be `native_non_blocking`.
template <typename Acceptor, typename Socket>
boost::asio::awaitable<void> accept_socket(Acceptor& acceptor, Socket& socket,
                                           boost::system::error_code& error) {
  while (true) {
    // Waits even if a peer is there already, so that a flood of peers leaves time for other work.
    co_await acceptor.async_wait(Acceptor::wait_read,
                                 boost::asio::redirect_error(boost::asio::use_awaitable, error));
    if (error) co_return;
    UniqueFd fd(::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd) {
      const auto local = acceptor.local_endpoint(error);
      if (!error) {
        adopt_socket(socket, typename Socket::protocol_type(local.protocol()), std::move(fd),
                     error);
      }
      co_return;
    }
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) continue;
    error.assign(errno, boost::system::system_category());
    co_return;
  }
}

}  // namespace elastic
