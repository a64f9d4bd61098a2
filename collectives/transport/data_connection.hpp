#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <span>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.hpp"
#include "base/handshake.hpp"
#include "base/status.hpp"
#include "base/tls_session.hpp"
#include "base/unique_fd.hpp"
#include "collectives/transport/link_greeting.hpp"
#include "collectives/transport/linker_options.hpp"
#include "collectives/transport/stream.hpp"

namespace elastic::transport {

/// TCP and AF_UNIX alike.
using DataSocket = boost::asio::generic::stream_protocol::socket;

/// A connection on which both ends have proved that they know the secret. Belongs to the control
/// thread until it becomes a stream.
struct DataConnection {
  DataSocket socket;
  TlsSessionPtr tls;  ///< null if it is not encrypted
};

/// The sockets of one Linker that are no links: on their way to one, relayed or measured. Does not
/// own them. Belongs to the control thread.
class OpenSockets {
 public:
  void add(DataSocket& socket) { sockets_.insert(&socket); }
  void remove(DataSocket& socket) { sockets_.erase(&socket); }
  std::size_t size() const { return sockets_.size(); }
  /// Closes all of them: what waits for them ends. From now on no new work may begin.
  void close();
  bool closed() const { return closed_; }

 private:
  std::set<DataSocket*> sockets_;
  bool closed_ = false;
};

/// Closes `socket` when the time is up, unless this was destroyed before. Keeps it among `open` for
/// as long. Belongs to the control thread.
class SocketDeadline {
 public:
  SocketDeadline(DataSocket& socket, Milliseconds deadline, OpenSockets& open);
  ~SocketDeadline();
  SocketDeadline(const SocketDeadline&) = delete;
  SocketDeadline& operator=(const SocketDeadline&) = delete;
  /// Counts `deadline` from now.
  void restart(Milliseconds deadline);

 private:
  DataSocket& socket_;
  OpenSockets& open_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<char> alive_;  // an expiry that is under way finds it gone
};

/// The descriptor of `socket`; none if the deadline closed it in the moment that it was through.
UniqueFd take_descriptor(DataSocket& socket);

/// Performs TLS's own handshake if this connection is to be encrypted (`encrypt` is the job's
/// option); null if it is not. The caller has set a deadline.
boost::asio::awaitable<Result<TlsSessionPtr>> secure(DataSocket& socket,
                                                     const LinkGreeting& greeting,
                                                     TlsSession::Role role,
                                                     Result<SessionKey> session_key, bool encrypt);

/// Receives at least a byte.
boost::asio::awaitable<Result<std::size_t>> receive(DataConnection& from,
                                                    std::span<std::byte> into);

/// The stream over a connection that is through, or null if a deadline closed it in that moment.
StreamPtr tcp_stream(DataConnection from, const LinkerOptions& options);

}  // namespace elastic::transport
