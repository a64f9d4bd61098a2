#include "rendezvous/protocol/frame.hpp"

#include <cstdio>
#include <span>

#include "base/hash.hpp"
#include "rendezvous/protocol/codec.hpp"

namespace elastic::rendezvous {

namespace {

constexpr std::size_t kChecksumAt = 4;
constexpr std::size_t kHeaderChecksumAt = 8;

std::uint32_t checksum(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(hash_of(bytes));
}

void put(FrameHeader& header, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    header.at(at + i) = static_cast<std::byte>((value >> (24 - 8 * i)) & 0xFFU);
  }
}

std::uint32_t get(const FrameHeader& header, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = value << 8U | std::to_integer<std::uint32_t>(header.at(at + i));
  }
  return value;
}

Status damaged(const std::string& what, std::uint32_t announced, std::uint32_t found) {
  std::array<char, 48> sums{};
  std::snprintf(sums.data(), sums.size(), " (checksum %08x instead of %08x)", found, announced);
  return Status(Code::kDamaged, what + " was damaged on the way" + sums.data());
}

}  // namespace

FrameStart frame_start(std::string_view text) {
  return {static_cast<std::uint32_t>(text.size()), checksum(std::as_bytes(std::span(text)))};
}

FrameHeader encode_start(const FrameStart& start) {
  FrameHeader header{};
  put(header, 0, start.bytes);
  put(header, kChecksumAt, start.checksum);
  put(header, kHeaderChecksumAt, checksum(std::span(header).first(kHeaderChecksumAt)));
  return header;
}

std::string framed(std::string_view text) {
  const FrameHeader header = encode_start(frame_start(text));
  std::string frame(reinterpret_cast<const char*>(header.data()), header.size());
  return frame.append(text);
}

Result<FrameStart> decode_start(const FrameHeader& header) {
  const std::uint32_t announced = get(header, kHeaderChecksumAt);
  const std::uint32_t found = checksum(std::span(header).first(kHeaderChecksumAt));
  if (announced != found) return damaged("the header of a control frame", announced, found);
  const FrameStart start{get(header, 0), get(header, kChecksumAt)};
  if (start.bytes == 0 || start.bytes > kMaxMessageBytes) {
    return Status(Code::kProtocol, "a message of " + std::to_string(start.bytes) +
                                       " bytes is announced, 1 to " +
                                       std::to_string(kMaxMessageBytes) + " are allowed");
  }
  return start;
}

Status check_text(const FrameStart& start, std::string_view text) {
  const FrameStart found = frame_start(text);
  if (found == start) return {};
  return damaged("a control frame of " + std::to_string(start.bytes) + " bytes", start.checksum,
                 found.checksum);
}

}  // namespace elastic::rendezvous
