#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace elastic::transport {

/// In place of a transport: the connection is to measure the line, and becomes no link.
inline constexpr const char* kProbe = "probe";

/// The context of a data connection's handshake: the dialer, the worker that it dials, and the
/// stream of the link.
struct LinkGreeting {
  std::string job;
  std::string dialer;     ///< incarnation
  std::string acceptor;   ///< incarnation
  std::string transport;  ///< "shm", "tcp" or kProbe
  std::string link_id;
  std::size_t lane = 0;
  std::size_t stream = 0;
  std::size_t streams = 1;
  std::uint64_t generation = 0;  ///< of the view that the dialer wants the link for
  std::string target;            ///< incarnation that the acceptor is asked to relay to; or empty
  std::string via;               ///< incarnation that relays this connection; or empty
};

/// Whether the connection is one that TLS is for where the job encrypts. Not where it only hands
/// shared memory over, nor on the way to a relay: what goes through it is encrypted by its ends.
inline bool carries_data(const LinkGreeting& greeting) {
  return greeting.transport != "shm" && greeting.target.empty();
}

/// The byte with which the acceptor ends the handshake.
enum class Verdict : std::uint8_t {
  kWelcome = 1,
  kOldGeneration = 2,  ///< the acceptor is in a later view already
  kNoRelay = 3,        ///< the acceptor does not relay between these two, or not now
  kUnreachable = 4,    ///< the acceptor cannot reach the target either
};

/// The dialer's status for it: ok if welcome, kAborted if it was for an earlier view, otherwise
/// kRefused.
Status judge(Verdict verdict);

std::string encode(const LinkGreeting& greeting);
Result<LinkGreeting> decode_greeting(const std::string& text);

}  // namespace elastic::transport
