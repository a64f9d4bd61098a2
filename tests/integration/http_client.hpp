#pragma once

#include <string>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace elastic::testing {

/// A connection to a server of HTTP, without a library for it: half requests are made, too.
class HttpClient {
 public:
  /// `address` is "127.0.0.1:4711".
  explicit HttpClient(const std::string& address) : socket_(io_) {
    const auto colon = address.rfind(':');
    socket_.connect({boost::asio::ip::make_address(address.substr(0, colon)),
                     static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1)))});
  }

  void send(const std::string& bytes) {
    boost::system::error_code closed;
    boost::asio::write(socket_, boost::asio::buffer(bytes), closed);
  }
  /// All that comes until the server closes.
  std::string read_to_end() {
    std::string all;
    boost::system::error_code end;
    boost::asio::read(socket_, boost::asio::dynamic_buffer(all), end);
    return all;
  }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
};

/// The whole answer, with its header.
inline std::string http_get(const std::string& address, const std::string& path,
                            const std::string& method = "GET") {
  HttpClient client(address);
  client.send(method + " " + path + " HTTP/1.1\r\nHost: " + address + "\r\n\r\n");
  return client.read_to_end();
}

/// The part after the header.
inline std::string body_of(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace elastic::testing
