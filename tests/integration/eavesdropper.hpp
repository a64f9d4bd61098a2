#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace elastic {

/// A proxy for a port of this machine that passes on and records all data.
class Eavesdropper {
 public:
  explicit Eavesdropper(std::uint16_t target);
  ~Eavesdropper();
  Eavesdropper(const Eavesdropper&) = delete;
  Eavesdropper& operator=(const Eavesdropper&) = delete;

  /// The address to connect to, instead of that of the target.
  std::string address() const;
  /// Whether `what` was in what one end sent to the other, and went on to it.
  bool heard(const std::string& what) const;
  /// Bytes so far, both ways.
  std::size_t bytes() const;

 private:
  using Socket = boost::asio::ip::tcp::socket;
  template <typename T>
  using Task = boost::asio::awaitable<T>;

  Task<void> accept();
  Task<void> pass_on(std::shared_ptr<Socket> from, std::shared_ptr<Socket> to);

  const std::uint16_t target_;
  boost::asio::io_context io_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  mutable std::mutex mutex_;
  std::map<const Socket*, std::string> heard_;  // of each sender; under mutex_
  std::thread thread_;
};

}  // namespace elastic
