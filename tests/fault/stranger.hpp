#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/handshake.hpp"

namespace elastic::testing {

/// A connection to one of a job's ports by a program that does not belong to the job.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port) : socket_(io_) {
    socket_.connect({boost::asio::ip::address_v4::loopback(), port});
    // Longer than any deadline of the library.
    const timeval receive_timeout{20, 0};
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &receive_timeout,
                 sizeof receive_timeout);
  }

  /// False when the other side has closed.
  template <typename Bytes>
  bool send(const Bytes& bytes) {
    boost::system::error_code error;
    boost::asio::write(socket_, boost::asio::buffer(bytes), error);
    return !error;
  }
  /// Receives kBytes bytes; nothing if the other side closes before.
  template <std::size_t kBytes>
  std::optional<std::array<std::byte, kBytes>> receive() {
    std::array<std::byte, kBytes> bytes{};
    boost::system::error_code error;
    boost::asio::read(socket_, boost::asio::buffer(bytes), error);
    return error ? std::nullopt : std::optional(bytes);
  }
  /// Waits until the other side closes; false if it does not, or says something before.
  bool is_dropped() {
    std::array<char, 1> byte{};
    boost::system::error_code error;
    const std::size_t got = socket_.read_some(boost::asio::buffer(byte), error);
    return got == 0 && error != boost::asio::error::would_block &&
           error != boost::asio::error::try_again;
  }
  /// Closes without the goodbye of TCP, which would keep the port busy for a minute.
  void reset() {
    boost::system::error_code ignored;
    socket_.set_option(boost::asio::socket_base::linger(true, 0), ignored);
    socket_.close(ignored);
  }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
};

}  // namespace elastic::testing
