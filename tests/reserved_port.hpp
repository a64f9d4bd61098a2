#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_fd.hpp"

namespace elastic::testing {

/// A port of 127.0.0.1 that no other program of this machine is given while the object lives.
/// No program listens there, except those that a test tells the number, with SO_REUSEADDR: servers
/// that are started again, one after another.
class ReservedPort {
 public:
  ReservedPort() {
    const int on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        ::bind(socket_.get(), generic, length) != 0 ||
        ::getsockname(socket_.get(), generic, &length) != 0) {
      throw std::runtime_error("cannot reserve a port");
    }
    number_ = ntohs(address.sin_port);
  }

  std::uint16_t number() const { return number_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(number_); }

 private:
  UniqueFd socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::uint16_t number_ = 0;
};

}  // namespace elastic::testing
