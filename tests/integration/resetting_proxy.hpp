#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "integration/carry_bytes.hpp"

namespace elastic::testing {

/// Stands between clients and a server of this host, and resets their connections when told to, as
/// a router does that has lost its table. Has a thread of its own.
class ResettingProxy {
 public:
  using tcp = boost::asio::ip::tcp;

  explicit ResettingProxy(std::uint16_t server)
      : server_(boost::asio::ip::address_v4::loopback(), server),
        acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}) {
    boost::asio::co_spawn(io_, accept(), boost::asio::detached);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~ResettingProxy() {
    io_.stop();
    thread_.join();
  }
  ResettingProxy(const ResettingProxy&) = delete;
  ResettingProxy& operator=(const ResettingProxy&) = delete;

  std::string address() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  /// Connections that there have been.
  std::size_t accepted() const { return accepted_; }

  /// The oldest `most` connections, at both ends.
  void reset(std::size_t most) {
    boost::asio::post(io_, [this, most] {
      for (std::size_t left = most; left > 0 && !pairs_.empty(); --left) {
        for (const SharedSocket& socket : {pairs_.front().client, pairs_.front().server}) {
          boost::system::error_code ignored;
          socket->set_option(tcp::socket::linger(true, 0), ignored);
          socket->close(ignored);
        }
        pairs_.pop_front();
      }
    });
  }

 private:
  struct Pair {
    SharedSocket client;
    SharedSocket server;
  };

  boost::asio::awaitable<void> accept() {
    boost::system::error_code error;
    while (!error) {
      const auto client = std::make_shared<tcp::socket>(io_);
      const auto server = std::make_shared<tcp::socket>(io_);
      co_await acceptor_.async_accept(
          *client, boost::asio::redirect_error(boost::asio::use_awaitable, error));
      if (error) co_return;
      server->connect(server_, error);
      pairs_.push_back({client, server});
      ++accepted_;
      boost::asio::co_spawn(io_, carry(client, server), boost::asio::detached);
      boost::asio::co_spawn(io_, carry(server, client), boost::asio::detached);
    }
  }

  boost::asio::awaitable<void> carry(SharedSocket from, SharedSocket to) {
    co_await carry_bytes(from, to, [](std::span<std::byte> /*bytes*/) {});
    std::erase_if(pairs_,
                  [&](const Pair& pair) { return pair.client == from || pair.server == from; });
  }

  boost::asio::io_context io_{1};
  const tcp::endpoint server_;
  tcp::acceptor acceptor_;
  std::list<Pair> pairs_;
  std::atomic<std::size_t> accepted_{0};
  std::thread thread_;
};

}  // namespace elastic::testing
