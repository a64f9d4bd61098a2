#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.hpp"
#include "base/handshake.hpp"
#include "base/status.hpp"
#include "base/tls_session.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/large_writes.hpp"

namespace elastic::rendezvous {

struct HostPort {
  std::string host;
  std::string port;
};
/// Takes "host:port" and "[v6]:port" apart. kInvalidArgument quotes what is neither.
Result<HostPort> parse_address(const std::string& address);
/// The addresses of a list with commas, in its order, each of them as for `parse_address`.
Result<std::vector<std::string>> parse_addresses(const std::string& list);
std::string to_string(const boost::asio::ip::tcp::endpoint& endpoint);

/// A message as it travels, for one connection or many.
class Frame {
 public:
  explicit Frame(const Message& message);
  const std::shared_ptr<const std::string>& text() const { return text_; }

 private:
  std::shared_ptr<const std::string> text_;
};

/// An authenticated connection that carries messages, for both sides: the handshake, then frames,
/// under TLS where the job encrypts. Nothing but the handshake is parsed of a peer that has not
/// proven to know the secret.
///
/// Lives on the socket's io_context, which one thread runs; every function is called there.
/// Shared: coroutines and handlers that are pending keep it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  /// `dialed`: the address by which the other side was found; empty where it has dialed.
  explicit Connection(Socket socket, std::string dialed = {});

  /// As the one that dialed. kRefused: another secret, only one side encrypts, or no elastic of
  /// this version is there. kPeerLost: the connection broke.
  boost::asio::awaitable<Status> greet(const Secret& secret, bool encrypt,
                                       const Greeting& greeting);
  /// As the one that accepted; returns what the dialer says of itself. Calls `on_first_bytes` when
  /// the dialer has said hello.
  boost::asio::awaitable<Result<Greeting>> accept_handshake(const Secret& secret, bool encrypt,
                                                            std::function<void()> on_first_bytes);

  /// Makes the messages of the bytes that come, in place of `unpack`.
  using Unpack = std::function<Result<Message>(std::string_view)>;
  void unpack_with(Unpack unpack) { unpack_ = std::move(unpack); }

  /// The next message. kPeerLost: the connection is closed or broken. kDamaged: what came is not
  /// what was sent; the connection is still there, but no more can be read from it. kProtocol: what
  /// came is no message.
  boost::asio::awaitable<Result<Message>> read();

  /// Large messages take turns with those of other connections.
  void take_turns(std::shared_ptr<LargeWrites> writes) { large_writes_ = std::move(writes); }

  /// Queues a message. A peer that does not read what is queued is given up.
  void send(const Message& message) { send(Frame(message)); }
  void send(const Frame& frame);

  /// Sends what is queued, then no more. The reader must go on until `read` fails, and drop what
  /// comes, so that sent data is not lost to a reset; that ends after a moment at the latest.
  void close();
  /// Closes, and reads to the end itself.
  boost::asio::awaitable<void> drain();
  /// Closes now.
  void abort(const std::string& why);

  /// Aborts when the time has passed, unless it is set again or `no_deadline`.
  void set_deadline(Duration timeout, std::string why);
  void no_deadline();

  bool closing() const { return closing_; }
  /// The bytes of all messages so far, with their headers.
  std::uint64_t received_bytes() const { return received_bytes_; }
  boost::asio::any_io_executor executor() { return socket_.get_executor(); }
  /// The other side's address.
  const std::string& peer() const { return peer_; }
  const std::string& dialed() const { return dialed_; }
  /// The other side's origin: see origin_of. Empty where it was gone at once.
  std::string origin() const;

 private:
  boost::asio::awaitable<bool> read_exactly(void* into, std::size_t bytes);
  boost::asio::awaitable<bool> open_exactly(std::span<std::byte> into);
  boost::asio::awaitable<bool> arrival();
  boost::asio::awaitable<Status> secure(TlsSession::Role role, const SessionKey& session_key);
  boost::asio::awaitable<bool> write_all(const void* from, std::size_t bytes);
  void write_next();
  void write_front(LargeWrites::Turn turn);
  void finish_sending();
  Status lost() const;

  Socket socket_;
  boost::asio::steady_timer deadline_;
  std::string peer_;
  const std::string dialed_;
  TlsSessionPtr tls_;  ///< where the job encrypts
  /// Frames, encrypted if at all; the first is being written.
  std::deque<std::shared_ptr<const std::string>> queue_;
  Unpack unpack_ = unpack;
  std::shared_ptr<LargeWrites> large_writes_;  ///< null: large messages are written at once
  std::size_t queued_bytes_ = 0;
  std::uint64_t received_bytes_ = 0;
  bool closing_ = false;
  std::uint64_t deadline_number_ = 0;
  std::string why_;       ///< why it was aborted, or cannot be read any more
  bool damaged_ = false;  ///< that is why
};

}  // namespace elastic::rendezvous
