#include "eavesdropper.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace elastic {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

tcp::endpoint loopback(std::uint16_t port) {
  return {asio::ip::address_v4::loopback(), port};
}

}  // namespace

Eavesdropper::Eavesdropper(std::uint16_t target) : target_(target), acceptor_(io_, loopback(0)) {
  asio::co_spawn(io_, accept(), asio::detached);
  thread_ = std::thread([this] { io_.run(); });
}

Eavesdropper::~Eavesdropper() {
  io_.stop();
  thread_.join();
}

std::string Eavesdropper::address() const {
  return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
}

bool Eavesdropper::heard(const std::string& what) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      heard_, [&](const auto& one) { return one.second.find(what) != std::string::npos; });
}

std::size_t Eavesdropper::bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t total = 0;
  for (const auto& [sender, said] : heard_) total += said.size();
  return total;
}

Eavesdropper::Task<void> Eavesdropper::accept() {
  boost::system::error_code error;
  for (;;) {
    const auto dialer = std::make_shared<Socket>(io_);
    const auto target = std::make_shared<Socket>(io_);
    co_await acceptor_.async_accept(*dialer, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    co_await target->async_connect(loopback(target_),
                                   asio::redirect_error(asio::use_awaitable, error));
    if (error) continue;
    asio::co_spawn(io_, pass_on(dialer, target), asio::detached);
    asio::co_spawn(io_, pass_on(target, dialer), asio::detached);
  }
}

Eavesdropper::Task<void> Eavesdropper::pass_on(std::shared_ptr<Socket> from,
                                               std::shared_ptr<Socket> to) {
  std::array<char, 1U << 14> buffer;
  boost::system::error_code error;
  for (;;) {
    const std::size_t got = co_await from->async_read_some(
        asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
    {
      const std::lock_guard lock(mutex_);
      heard_[from.get()].append(buffer.data(), got);
    }
    co_await asio::async_write(*to, asio::buffer(buffer, got),
                               asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
  }
  boost::system::error_code ignored;
  to->shutdown(Socket::shutdown_send, ignored);
}

}  // namespace elastic
