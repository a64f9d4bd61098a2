#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "carry_bytes.hpp"
#include "rendezvous/protocol/connection.hpp"

namespace elastic::testing {

/// Stands between clients and a server, passes on what they say, and flips one bit of it when told
/// to. The end of one side is the end of the other. Lives on one io_context, which outlives it.
class FlippingProxy {
 public:
  using tcp = boost::asio::ip::tcp;
  enum class Towards { kClient, kServer };

  FlippingProxy(boost::asio::io_context& io, const std::string& server)
      : io_(io), acceptor_(io, {boost::asio::ip::address_v4::loopback(), 0}) {
    const auto parts = rendezvous::parse_address(server).value();
    server_ = {boost::asio::ip::make_address(parts.host),
               static_cast<std::uint16_t>(std::stoi(parts.port))};
    boost::asio::co_spawn(io_, accept(), boost::asio::detached);
  }
  ~FlippingProxy() {
    acceptor_.close();
    for (const auto& socket : sockets_) socket->close();
  }
  FlippingProxy(const FlippingProxy&) = delete;
  FlippingProxy& operator=(const FlippingProxy&) = delete;

  std::string address() const { return rendezvous::to_string(acceptor_.local_endpoint()); }

  /// Flips bit `at` of the next bytes in that direction, or of those that come after `pieces` more.
  /// If fewer bits come, it flips the last one.
  void flip(Towards side, std::size_t at, int pieces = 0) {
    waiting_ = true;
    side_ = side;
    at_ = at;
    pieces_ = pieces;
  }
  bool flipped() const { return !waiting_; }

 private:
  boost::asio::awaitable<void> accept() {
    boost::system::error_code error;
    while (true) {
      const auto client = std::make_shared<tcp::socket>(io_);
      const auto server = std::make_shared<tcp::socket>(io_);
      co_await acceptor_.async_accept(
          *client, boost::asio::redirect_error(boost::asio::use_awaitable, error));
      if (error) co_return;
      sockets_.insert(sockets_.end(), {client, server});
      server->connect(server_, error);
      carry(client, server, Towards::kServer);
      carry(server, client, Towards::kClient);
    }
  }

  void carry(SharedSocket from, SharedSocket to, Towards side) {
    const auto alter = [this, side](std::span<std::byte> bytes) { flip_if_due(side, bytes); };
    boost::asio::co_spawn(io_, carry_bytes(std::move(from), std::move(to), alter),
                          boost::asio::detached);
  }

  void flip_if_due(Towards side, std::span<std::byte> bytes) {
    if (!waiting_ || side != side_ || pieces_-- != 0) return;
    const std::size_t bit = std::min(at_, 8 * bytes.size() - 1);
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    waiting_ = false;
  }

  boost::asio::io_context& io_;
  tcp::acceptor acceptor_;
  tcp::endpoint server_;
  std::vector<SharedSocket> sockets_;
  bool waiting_ = false;
  Towards side_ = Towards::kClient;
  std::size_t at_ = 0;
  int pieces_ = 0;
};

}  // namespace elastic::testing
