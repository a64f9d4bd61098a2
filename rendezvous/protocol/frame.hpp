#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.hpp"

namespace elastic::rendezvous {

/// The header of every message on the wire, so that a bit that is flipped where TCP does not
/// notice is never taken for the message. The header has a checksum of its own: no receiver waits
/// for as many bytes as a damaged length announces.
struct FrameStart {
  std::uint32_t bytes = 0;     ///< of the message
  std::uint32_t checksum = 0;  ///< of the message

  bool operator==(const FrameStart&) const = default;
};

/// Three numbers, most significant byte first: those of FrameStart, and a checksum of both.
inline constexpr std::size_t kFrameHeaderBytes = 12;
using FrameHeader = std::array<std::byte, kFrameHeaderBytes>;

FrameStart frame_start(std::string_view text);
FrameHeader encode_start(const FrameStart& start);
/// Header and message.
std::string framed(std::string_view text);

/// kDamaged: it is not as it was sent. kProtocol: the length is 0 or more than kMaxMessageBytes.
Result<FrameStart> decode_start(const FrameHeader& header);
/// kDamaged: `text` is not what was announced.
Status check_text(const FrameStart& start, std::string_view text);

}  // namespace elastic::rendezvous
