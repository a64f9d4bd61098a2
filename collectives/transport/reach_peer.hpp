#pragma once

#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/transport/data_connection.hpp"
#include "collectives/transport/link_greeting.hpp"
#include "collectives/transport/linker_context.hpp"
#include "collectives/transport/peer.hpp"

/// The dialing end of a data connection. Runs on the control thread; the caller keeps the context
/// and the arguments alive while it waits.
namespace elastic::transport {

/// "1.2.3.4:5" or "[::1]:5".
bool parse_address(const std::string& text, boost::asio::ip::tcp::endpoint& endpoint);

/// Connects with `peer` over `transport`, "shm" or "tcp". The addresses of `peer` share `limit`:
/// one that is silent must not hide the next.
Task<Result<DataSocket>> reach(LinkerContext& context, const Peer& peer,
                               const std::string& transport, Milliseconds limit);

/// Performs the handshake over a connection that was reached, and TLS's if the job encrypts.
Task<Status> introduce(LinkerContext& context, DataConnection& with, const LinkGreeting& greeting,
                       Milliseconds limit);

}  // namespace elastic::transport
