#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

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
  using Socket = std::shared_ptr<tcp::socket>;

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
      boost::asio::co_spawn(io_, carry(client, server, Towards::kServer), boost::asio::detached);
      boost::asio::co_spawn(io_, carry(server, client, Towards::kClient), boost::asio::detached);
    }
  }

  boost::asio::awaitable<void> carry(Socket from, Socket to, Towards side) {
    std::array<unsigned char, 65536> buffer{};
    boost::system::error_code error;
    while (!error) {
      const std::size_t bytes = co_await from->async_read_some(
          boost::asio::buffer(buffer),
          boost::asio::redirect_error(boost::asio::use_awaitable, error));
      if (error) break;
      if (waiting_ && side == side_ && pieces_-- == 0) {
        const std::size_t bit = std::min(at_, 8 * bytes - 1);
        buffer.at(bit / 8) ^= static_cast<unsigned char>(1U << (bit % 8));
        waiting_ = false;
      }
      co_await boost::asio::async_write(
          *to, boost::asio::buffer(buffer.data(), bytes),
          boost::asio::redirect_error(boost::asio::use_awaitable, error));
    }
    boost::system::error_code ignored;
    from->close(ignored);
    to->close(ignored);
  }

  boost::asio::io_context& io_;
  tcp::acceptor acceptor_;
  tcp::endpoint server_;
  std::vector<Socket> sockets_;
  bool waiting_ = false;
  Towards side_ = Towards::kClient;
  std::size_t at_ = 0;
  int pieces_ = 0;
};

}  // namespace elastic::testing
