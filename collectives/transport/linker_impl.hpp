#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/log_limit.hpp"
#include "base/thread_checker.hpp"
#include "base/tls_session.hpp"
#include "base/unauthenticated_connections.hpp"
#include "base/unique_fd.hpp"
#include "collectives/transport/link_greeting.hpp"
#include "collectives/transport/link_pool.hpp"
#include "collectives/transport/linker.hpp"

namespace elastic::transport {

/// Lives on the control thread. The coroutines that dial and greet hold it alive.
class Linker::Impl : public std::enable_shared_from_this<Linker::Impl> {
 public:
  /// TCP and AF_UNIX alike.
  using Socket = boost::asio::generic::stream_protocol::socket;
  template <typename T>
  using Task = boost::asio::awaitable<T>;

  Impl(boost::asio::io_context& io, LinkerOptions options);

  Status listen();
  const Endpoints& endpoints() const { return endpoints_; }
  void connect(std::vector<Peer> peers, std::uint64_t generation, Milliseconds deadline,
               Connected callback);
  void cancel();
  void probe(Peer peer, Milliseconds deadline, Measured callback);
  void watch_for_end(Peer peer, Ended ended);
  void forget_ends() { ++end_watches_; }
  void close();

 private:
  /// The connections of one listener that have not shown the secret yet.
  struct Newcomers {
    static constexpr std::size_t kMost = 256;
    UnauthenticatedConnections admitted{kMost};
    std::map<UnauthenticatedConnections::Id, Socket*> sockets = {};
  };
  /// One of them, for as long as it is one.
  class Newcomer {
   public:
    /// Closes another connection where there are too many.
    Newcomer(Newcomers& among, std::string origin, Socket& socket);
    ~Newcomer() { leave(); }
    Newcomer(const Newcomer&) = delete;
    Newcomer& operator=(const Newcomer&) = delete;
    void heard() { among_.admitted.heard(id_); }
    void leave();

   private:
    Newcomers& among_;
    UnauthenticatedConnections::Id id_ = 0;
  };

  /// A connection on which both ends have shown the secret.
  struct Conversation {
    Socket socket;
    TlsSessionPtr tls;  ///< null where it is not encrypted
  };

  // linker.cpp
  void finish_if_complete();
  void finish(Result<std::vector<LinksOfPeer>> outcome);
  void set_deadline(Milliseconds deadline);
  void on_deadline(std::uint64_t call);
  void hurry_without_descriptors();
  bool wanted(const std::string& peer) const;
  int index_of(const std::string& peer) const;
  std::string transport_to(const Peer& peer) const;

  // link_acceptor.cpp
  Status listen_tcp();
  Status listen_local();
  template <typename Acceptor>
  Task<void> accept_loop(Acceptor& acceptor, Newcomers& newcomers);
  Task<void> greet(Socket socket, std::string origin, Newcomers& newcomers);
  Task<Result<LinkGreeting>> greeted(Conversation& with, Newcomer& newcomer);
  Task<Status> admit(Conversation& with, const handshake::Acceptor& acceptor,
                     const LinkGreeting& from);

  // link_dialer.cpp
  Task<void> dial(Peer peer, std::size_t lane);
  Task<Status> dial_once(const Peer& peer, std::size_t lane, const Peer* relay, Milliseconds limit);
  Task<Result<Conversation>> get_through(const Peer& peer, LinkGreeting greeting, const Peer* relay,
                                         Milliseconds limit);
  Task<Result<StreamPtr>> share_memory(Socket& socket, Milliseconds limit);
  Task<Result<Socket>> reach(const Peer& peer, const std::string& transport, Milliseconds limit);
  Task<Status> introduce(Conversation& with, const LinkGreeting& greeting, Milliseconds limit);
  std::vector<Peer> relays_to(const Peer& peer) const;
  std::size_t streams_to(const Peer& peer, bool relayed) const;

  // link_encryption.cpp
  Task<Result<TlsSessionPtr>> secure(Socket& socket, const LinkGreeting& greeting,
                                     TlsSession::Role role, Result<SessionKey> session_key);
  static Task<Result<std::size_t>> receive(Conversation& with, std::span<std::byte> into);
  StreamPtr tcp_stream(Conversation with) const;

  // link_relay.cpp
  struct Relay;
  Task<void> relay(Socket dialer, LinkGreeting from);
  Task<Result<Socket>> reach_target(const LinkGreeting& from, Verdict& verdict);
  Task<void> pump(std::shared_ptr<Relay> relay, bool to_target);
  Task<void> watch(std::shared_ptr<Relay> relay);

  // link_end_watch.cpp
  Task<void> look_for_end(Peer peer, std::uint64_t watch, Ended ended);
  Task<bool> has_ended(const Peer& peer);

  // link_probe.cpp
  Task<void> measure(Peer peer, std::uint64_t probe);
  Task<Result<double>> measure_once(const Peer& peer);
  Task<void> serve_probe(Conversation& with);
  void finish_probe(std::uint64_t probe, Result<double> outcome);

  boost::asio::io_context& io_;
  const LinkerOptions options_;
  ThreadChecker control_thread_;
  boost::asio::ip::tcp::acceptor tcp_;
  boost::asio::local::stream_protocol::acceptor local_;
  Endpoints endpoints_;
  LinkPool pool_;
  std::set<Socket*> open_;  // on their way to a link, or relayed; `close` ends them
  LogLimit stranger_lines_;
  Newcomers newcomers_by_tcp_;
  Newcomers newcomers_of_host_;
  std::size_t relays_ = 0;
  bool closed_ = false;

  // The arguments of the last call of `connect`, finished or not.
  std::uint64_t generation_ = 0;
  std::map<std::string, Peer> members_;

  // The present call of `connect`.
  std::vector<Peer> peers_;
  Connected callback_;
  std::uint64_t call_ = 0;  // an expiry that was already queued may belong to an earlier call
  bool hurries_ = false;    // for lack of descriptors
  boost::asio::steady_timer deadline_;
  std::set<std::string> dialing_;           // peer and lane
  std::map<std::string, Status> failures_;  // the last one of each peer's dials

  // The present call of `probe`, and others' that are served.
  Measured measured_;
  std::uint64_t probe_ = 0;
  boost::asio::steady_timer probe_deadline_;
  int probes_served_ = 0;

  std::uint64_t end_watches_ = 0;  // of `watch_for_end`: earlier ones are to end
};

/// "1.2.3.4:5" or "[::1]:5".
bool parse_address(const std::string& text, boost::asio::ip::tcp::endpoint& endpoint);

/// Closes `socket` when the time is up, unless this was destroyed before. Keeps it among `open` for
/// as long, so that the Linker can close it, too.
class SocketDeadline {
 public:
  using Socket = Linker::Impl::Socket;
  SocketDeadline(Socket& socket, Milliseconds deadline, std::set<Socket*>& open);
  ~SocketDeadline();
  SocketDeadline(const SocketDeadline&) = delete;
  SocketDeadline& operator=(const SocketDeadline&) = delete;
  /// Counts `deadline` from now.
  void restart(Milliseconds deadline);

 private:
  Socket& socket_;
  std::set<Socket*>& open_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<char> alive_;  // an expiry that is under way finds it gone
};

/// The descriptor of `socket`; none if the deadline closed it in the moment that it was through.
UniqueFd take_descriptor(Linker::Impl::Socket& socket);

}  // namespace elastic::transport
