#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace elastic::testing {

using SharedSocket = std::shared_ptr<boost::asio::ip::tcp::socket>;

/// One direction of a proxy: writes to `to` what it reads from `from`, as `alter` has left it, and
/// closes both when either ends.
inline boost::asio::awaitable<void> carry_bytes(SharedSocket from, SharedSocket to,
                                                std::function<void(std::span<std::byte>)> alter) {
  std::array<std::byte, 65536> buffer{};
  boost::system::error_code error;
  while (!error) {
    const std::size_t bytes = co_await from->async_read_some(
        boost::asio::buffer(buffer),
        boost::asio::redirect_error(boost::asio::use_awaitable, error));
    if (error) break;
    alter(std::span(buffer).first(bytes));
    co_await boost::asio::async_write(
        *to, boost::asio::buffer(buffer.data(), bytes),
        boost::asio::redirect_error(boost::asio::use_awaitable, error));
  }
  boost::system::error_code ignored;
  from->close(ignored);
  to->close(ignored);
}

}  // namespace elastic::testing
