#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "base/handshake.hpp"
#include "base/log_limit.hpp"
#include "base/status.hpp"
#include "base/unauthenticated_connections.hpp"
#include "collectives/transport/data_connection.hpp"
#include "collectives/transport/link_greeting.hpp"
#include "collectives/transport/linker_context.hpp"
#include "collectives/transport/peer.hpp"

namespace elastic::transport {

/// The half of a Linker that listens. A connection must prove the job's secret before anything else
/// is read from it, and is passed on to the Sink then.
///
/// Belongs to the control thread. A coroutine that it spawns keeps it alive, also before the
/// coroutine begins.
class LinkAcceptor : public std::enable_shared_from_this<LinkAcceptor> {
 public:
  /// Takes the connections. Called on the control thread, and not after the context is closed.
  class Sink {
   public:
    virtual ~Sink() = default;
    /// Whether a further peer may be linked with.
    virtual bool has_room() const = 0;
    /// `from` has proved that it knows the secret. The verdict has been sent, unless `from` asks
    /// for a relay: then the relay sends it.
    virtual void on_connection(DataConnection connection, const LinkGreeting& from) = 0;
    /// A connection could not be accepted, perhaps for lack of descriptors.
    virtual void on_accept_failure() = 0;
  };

  /// `sink` must live until the context is closed.
  LinkAcceptor(std::shared_ptr<LinkerContext> context, Sink& sink);

  /// Opens the listeners. kUnavailable with the address and the reason if that fails.
  Status listen();
  /// How others reach the listeners.
  const Endpoints& endpoints() const { return endpoints_; }
  /// Refuses handshakes for earlier generations from now on.
  void set_generation(std::uint64_t generation) { generation_ = generation; }
  /// Sockets that are accepted, and whose greeting has not begun.
  std::size_t beginning() const { return beginning_; }
  /// Closes the listeners.
  void close();

 private:
  /// The connections of one listener that have not proved yet that they know the secret.
  struct UnauthenticatedSockets {
    static constexpr std::size_t kMost = 256;
    UnauthenticatedConnections admitted{kMost};
    std::map<UnauthenticatedConnections::Id, DataSocket*> sockets = {};
  };
  /// Lists one connection among them until it has proved that it knows the secret, or is closed.
  class Unauthenticated {
   public:
    /// Closes another connection if there are too many.
    Unauthenticated(UnauthenticatedSockets& among, std::string origin, DataSocket& socket);
    ~Unauthenticated() { end(); }
    Unauthenticated(const Unauthenticated&) = delete;
    Unauthenticated& operator=(const Unauthenticated&) = delete;
    void heard() { among_.admitted.heard(id_); }
    /// It has proved that it knows the secret, or is closed.
    void end();

   private:
    UnauthenticatedSockets& among_;
    UnauthenticatedConnections::Id id_ = 0;
  };

  Status listen_tcp();
  Status listen_local();
  template <typename Acceptor>
  Task<void> accept_loop(Acceptor& acceptor, UnauthenticatedSockets& among);
  Task<void> greet(DataSocket socket, std::string origin, UnauthenticatedSockets& among);
  Task<Result<LinkGreeting>> authenticate(DataConnection& with, Unauthenticated& state);
  Task<Status> admit(DataConnection& with, const handshake::Acceptor& acceptor,
                     const LinkGreeting& from);

  const std::shared_ptr<LinkerContext> context_;
  Sink& sink_;
  boost::asio::ip::tcp::acceptor tcp_;
  boost::asio::local::stream_protocol::acceptor local_;
  Endpoints endpoints_;
  std::uint64_t generation_ = 0;
  std::size_t beginning_ = 0;
  LogLimit refusal_lines_;
  UnauthenticatedSockets by_tcp_;
  UnauthenticatedSockets of_host_;
};

}  // namespace elastic::transport
