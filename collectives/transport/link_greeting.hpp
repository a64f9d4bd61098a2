#pragma once

#include <cstddef>
#include <string>

#include "base/status.hpp"

namespace elastic::transport {

/// In place of a transport: the connection is to measure the line, and becomes no link.
inline constexpr const char* kProbe = "probe";

/// What a dialer says about a data connection in the handshake's context: who it is, whom it wants,
/// and which stream of which link this is to be.
struct LinkGreeting {
  std::string job;
  std::string dialer;     ///< incarnation
  std::string acceptor;   ///< incarnation
  std::string transport;  ///< "shm", "tcp" or kProbe
  std::string link_id;
  std::size_t lane = 0;
  std::size_t stream = 0;
  std::size_t streams = 1;
};

std::string encode(const LinkGreeting& greeting);
Result<LinkGreeting> decode_greeting(const std::string& text);

}  // namespace elastic::transport
