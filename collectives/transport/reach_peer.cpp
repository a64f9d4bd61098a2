#include "collectives/transport/reach_peer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/asio_sockets.hpp"
#include "base/handshake.hpp"

namespace elastic::transport {

namespace asio = boost::asio;
using asio::ip::tcp;

bool parse_address(const std::string& text, tcp::endpoint& endpoint) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  unsigned short port = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data() + colon + 1, end, port).ptr != end) return false;
  boost::system::error_code error;
  endpoint = tcp::endpoint(asio::ip::make_address(host, error), port);
  return !error;
}

Task<Result<DataSocket>> reach(LinkerContext& context, const Peer& peer,
                               const std::string& transport, Milliseconds limit) {
  boost::system::error_code error;
  if (transport == "shm") {
    asio::local::stream_protocol::socket socket(context.io);
    const asio::local::stream_protocol::endpoint at(std::string(1, '\0') + peer.endpoints.local);
    open_socket(socket, at.protocol(), error);
    if (!error) {
      co_await socket.async_connect(at, asio::redirect_error(asio::use_awaitable, error));
    }
    if (!error) co_return DataSocket(std::move(socket));
    co_return Status(Code::kUnavailable,
                     "local socket " + peer.endpoints.local + ": " + error.message());
  }
  std::string tried;
  const auto addresses = static_cast<int>(std::max<std::size_t>(peer.endpoints.tcp.size(), 1));
  for (const std::string& address : peer.endpoints.tcp) {
    tcp::endpoint at;
    if (!parse_address(address, at)) continue;
    DataSocket socket(context.io);
    open_socket(socket, asio::generic::stream_protocol(at.protocol()), error);
    const SocketDeadline deadline(socket, limit / addresses, context.sockets);
    if (!error) {
      co_await socket.async_connect(at, asio::redirect_error(asio::use_awaitable, error));
    }
    if (!error) co_return std::move(socket);
    tried += (tried.empty() ? "" : "; ") + address + ": " + error.message();
  }
  co_return Status(Code::kUnavailable, tried.empty() ? "no address to dial" : tried);
}

Task<Status> introduce(LinkerContext& context, DataConnection& with, const LinkGreeting& greeting,
                       Milliseconds limit) {
  DataSocket& socket = with.socket;
  const SocketDeadline deadline(socket, limit, context.sockets);
  boost::system::error_code error;
  const auto awaited = [](boost::system::error_code& into) {
    return asio::redirect_error(asio::use_awaitable, into);
  };
  const handshake::Dialer dialer(context.options.secret, handshake::Purpose::kData,
                                 encode(greeting), context.options.encrypt);
  const Status gone(Code::kPeerLost, "it closed the connection in the handshake");

  const std::vector<std::byte> hello = dialer.hello();
  co_await asio::async_write(socket, asio::buffer(hello), awaited(error));
  if (error) co_return gone;
  std::array<std::byte, handshake::kChallengeBytes> challenge;
  co_await asio::async_read(socket, asio::buffer(challenge), awaited(error));
  if (error) co_return gone;
  Result<std::vector<std::byte>> proof = dialer.answer(challenge);
  if (!proof.ok()) co_return proof.status();
  co_await asio::async_write(socket, asio::buffer(proof.value()), awaited(error));
  if (error) co_return gone;
  Verdict verdict{};
  co_await asio::async_read(socket, asio::buffer(&verdict, 1), awaited(error));
  if (error) co_return gone;
  if (Status status = judge(verdict); !status.ok()) co_return status;
  Result<TlsSessionPtr> secured =
      co_await secure(socket, greeting, TlsSession::Role::kDialer, dialer.session_key(challenge),
                      context.options.encrypt);
  if (!secured.ok()) co_return secured.status();
  with.tls = std::move(secured).value();
  co_return Status();
}

}  // namespace elastic::transport
