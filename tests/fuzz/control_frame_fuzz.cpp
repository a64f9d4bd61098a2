// Input of a peer on the control connection: frames of JSON messages, or arbitrary bytes. If the
// first byte is even, the frames get valid checksums, so that their content is parsed, too; if it
// is odd, they keep the checksums of the input.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "fuzz/fuzz_input.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace elastic::rendezvous {
namespace {

void read_message(std::string_view text) {
  (void)decode_greeting(text);
  const Result<Message> message = unpack(text);
  if (!message.ok()) {
    fuzz::require(message.status().code() == Code::kProtocol, "failures are kProtocol");
    return;
  }
  if (const auto* announce = std::get_if<AnnounceChange>(&message.value())) {
    View before;
    before.generation = announce->change.before;
    before.members.resize(3);
    (void)apply(announce->change, before);
  }
  const std::string encoded = encode(message.value());
  const Result<Message> again = decode(encoded);
  fuzz::require(again.ok(), "what is encoded can be decoded");
  fuzz::require(again.value().index() == message.value().index(), "the type comes back");
  fuzz::require(encode(again.value()) == encoded, "every field comes back");
}

/// The header that fits what follows it in `input`: as many bytes as this one announces.
FrameHeader repaired(const FrameHeader& header, fuzz::Input input) {
  std::uint32_t bytes = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    bytes = bytes << 8U | std::to_integer<std::uint32_t>(header.at(i));
  }
  FrameStart start = frame_start(input.text(bytes));
  start.bytes = bytes;
  return encode_start(start);
}

/// Reads frames as a connection does.
void read_frames(fuzz::Input input, bool repair) {
  while (input.size() >= kFrameHeaderBytes) {
    FrameHeader header{};
    std::memcpy(header.data(), input.bytes(header.size()).data(), header.size());
    if (repair) header = repaired(header, input);
    const Result<FrameStart> start = decode_start(header);
    if (!start.ok()) {
      const Code code = start.status().code();
      fuzz::require(code == Code::kProtocol || (code == Code::kDamaged && !repair),
                    "failures are kProtocol or kDamaged");
      return;
    }
    const std::size_t bytes = start.value().bytes;
    fuzz::require(bytes > 0 && bytes <= kMaxMessageBytes, "lengths are bounded");
    fuzz::require(encode_start(start.value()) == header, "a header comes back");
    if (bytes > input.size()) return;
    const std::string_view text = input.text(bytes);
    const Status whole = check_text(start.value(), text);
    fuzz::require(whole.ok() || !repair, "checksums that fit do");
    if (!whole.ok()) return;
    read_message(text);
  }
}

}  // namespace
}  // namespace elastic::rendezvous

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  elastic::fuzz::Input input(data, size);
  elastic::rendezvous::read_frames(input, input.byte() % 2U == 0);
  elastic::rendezvous::read_message(input.text(size));
  return 0;
}
