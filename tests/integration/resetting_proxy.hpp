#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

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
        for (const Socket& socket : {pairs_.front().client, pairs_.front().server}) {
          boost::system::error_code ignored;
          socket->set_option(tcp::socket::linger(true, 0), ignored);
          socket->close(ignored);
        }
        pairs_.pop_front();
      }
    });
  }

 private:
  using Socket = std::shared_ptr<tcp::socket>;
  struct Pair {
    Socket client;
    Socket server;
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

  boost::asio::awaitable<void> carry(Socket from, Socket to) {
    std::array<std::byte, 65536> buffer{};
    boost::system::error_code error;
    while (!error) {
      const std::size_t bytes = co_await from->async_read_some(
          boost::asio::buffer(buffer),
          boost::asio::redirect_error(boost::asio::use_awaitable, error));
      if (error) break;
      co_await boost::asio::async_write(
          *to, boost::asio::buffer(buffer.data(), bytes),
          boost::asio::redirect_error(boost::asio::use_awaitable, error));
    }
    boost::system::error_code ignored;
    from->close(ignored);
    to->close(ignored);
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
