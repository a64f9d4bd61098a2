#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// A message is a JSON object with a "type". These limits bound what one message
/// may cost the receiver; both sides keep them. A view has some 400 bytes for each member.
inline constexpr std::size_t kMaxMessageBytes = 32 << 20;
inline constexpr std::size_t kMaxMessageDepth = 16;

std::string encode(const Message& message);

/// The same as bytes for the wire: compressed if it is long. A view has the same names and
/// addresses again and again, and goes to every worker.
std::string pack(const Message& message);
/// Reverse of `pack`; fails as `decode`.
Result<Message> unpack(std::string_view bytes);

/// kProtocol names the field that is missing, of the wrong type or out of range. Fields that are
/// not known are ignored, so that a newer side may say more.
Result<Message> decode(std::string_view text);

/// The type as it stands in the JSON, for logs.
std::string_view type_of(const Message& message);

/// The dialer's introduction, carried as the context of the handshake.
struct Greeting {
  int protocol = kProtocolVersion;
  std::string job;
  std::string role;  ///< "worker", "control" or "launcher"
};

std::string encode_greeting(const Greeting& greeting);
Result<Greeting> decode_greeting(std::string_view text);

}  // namespace elastic::rendezvous
