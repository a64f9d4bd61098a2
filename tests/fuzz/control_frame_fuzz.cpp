// What a peer on the control connection may send: frames of JSON messages, or anything.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "fuzz/fuzz_input.hpp"
#include "rendezvous/protocol/codec.hpp"

namespace elastic::rendezvous {
namespace {

void read_message(std::string_view text) {
  (void)decode_greeting(text);
  const Result<Message> message = decode(text);
  if (!message.ok()) {
    fuzz::require(message.status().code() == Code::kProtocol, "failures are kProtocol");
    return;
  }
  const std::string encoded = encode(message.value());
  const Result<Message> again = decode(encoded);
  fuzz::require(again.ok(), "what is encoded can be decoded");
  fuzz::require(again.value().index() == message.value().index(), "the type comes back");
  fuzz::require(encode(again.value()) == encoded, "every field comes back");
}

/// As a connection reads.
void read_frames(fuzz::Input input) {
  while (input.size() >= kFrameHeaderBytes) {
    FrameHeader header{};
    std::memcpy(header.data(), input.bytes(header.size()).data(), header.size());
    const Result<std::size_t> bytes = frame_bytes(header);
    if (!bytes.ok()) return;
    fuzz::require(bytes.value() > 0 && bytes.value() <= kMaxMessageBytes, "lengths are bounded");
    fuzz::require(frame_header(bytes.value()) == header, "a length comes back");
    if (bytes.value() > input.size()) return;
    read_message(input.text(bytes.value()));
  }
}

}  // namespace
}  // namespace elastic::rendezvous

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  elastic::fuzz::Input input(data, size);
  elastic::rendezvous::read_frames(input);
  elastic::rendezvous::read_message(input.text(size));
  return 0;
}
