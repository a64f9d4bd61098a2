#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/transport/link.hpp"

namespace elastic::transport {

struct Link::Flow {
  /// The use of the payload that is being read.
  enum class PayloadAction { kNone, kApply, kNote, kDrop };

  Flow(StreamPtr carrier, std::size_t number) : stream(std::move(carrier)), index(number) {}

  StreamPtr stream;
  const std::size_t index;  // among the link's
  bool in_use = true;       // takes notes and stripes that are to be sent

  // The frame being written: what is left of its header and payload.
  std::array<std::byte, FrameHeader::kBytes> header_out{};
  std::span<const std::byte> header_left;
  std::span<const std::byte> payload_left;
  std::optional<LinkMessages::Stripe> stripe;  // the payload, if it is one
  std::vector<std::byte> own_payload;  // of a note, or of a frame whose message was abandoned

  // The frame being read.
  bool has_header = false;
  std::uint64_t deferred_at = 0;  // LinkMessages::changes: until then its time has not come
  FrameHeader header;
  PayloadAction payload_action = PayloadAction::kNone;
  Sink sink;  // for kApply
  std::size_t payload_read = 0;
  PayloadChecksum received;  // of what was read of the payload, where the frame has a checksum
  std::vector<std::byte> note;
  bool unfinished = false;  // stopped for the sake of the others, not for want of bytes or room
  bool lost = false;        // the peer is gone: there is no more than what can be read already

  bool writing() const { return !header_left.empty() || !payload_left.empty(); }
  /// Neither used nor in the middle of anything.
  bool idle() const { return !in_use && !writing() && !has_header && !lost; }
};

}  // namespace elastic::transport
