// Bytes that come in place of TLS records: the lengths in their headers. They arrive in pieces of
// the sizes that the input says.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/tls_record.hpp"
#include "fuzz/fuzz_input.hpp"

namespace elastic {
namespace {

using Bytes = std::vector<std::byte>;

bool restore_in_pieces(Bytes& bytes, fuzz::Input& sizes) {
  RecordLengths lengths;
  bool whole = true;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t piece = std::min<std::size_t>(1U + sizes.number(), bytes.size() - at);
    const bool good = lengths.restore(std::span(bytes).subspan(at, piece));
    fuzz::require(good == !lengths.damaged(), "damage is told");
    fuzz::require(whole || !good, "damage stays");
    whole = good;
    at += piece;
  }
  return whole;
}

/// Checks that the size of the pieces makes no difference, for arbitrary bytes.
void read_anything(const Bytes& bytes, fuzz::Input sizes) {
  Bytes in_pieces = bytes;
  Bytes at_once = bytes;
  RecordLengths lengths;
  const bool whole = lengths.restore(at_once);
  fuzz::require(restore_in_pieces(in_pieces, sizes) == whole, "pieces make no difference");
  fuzz::require(!whole || in_pieces == at_once, "pieces make no difference to the bytes");
}

/// Checks that marked records are restored unchanged, and that a flipped bit in a length is found.
void read_marked(const Bytes& bodies, fuzz::Input sizes) {
  Bytes sent;
  std::vector<std::size_t> headers;
  for (std::size_t at = 0; at < bodies.size();) {
    const std::size_t body = std::min<std::size_t>(sizes.number() % 20000U, bodies.size() - at);
    headers.push_back(sent.size());
    for (const unsigned byte :
         {23U, 3U, 3U, static_cast<unsigned>(body >> 8U), static_cast<unsigned>(body & 0xffU)}) {
      sent.push_back(static_cast<std::byte>(byte));
    }
    sent.insert(sent.end(), bodies.begin() + static_cast<std::ptrdiff_t>(at),
                bodies.begin() + static_cast<std::ptrdiff_t>(at + body));
    at += std::max<std::size_t>(body, 1);
  }
  Bytes marked = sent;
  fuzz::require(RecordLengths::mark(marked) == marked.size(), "whole records are marked");
  Bytes restored = marked;
  fuzz::require(restore_in_pieces(restored, sizes) && restored == sent, "records come back");
  if (headers.empty()) return;
  Bytes damaged = marked;
  const std::size_t header = headers[sizes.number() % headers.size()];
  damaged[header + 3 + sizes.byte() % 2U] ^= std::byte(1U << (sizes.byte() % 8U));
  RecordLengths lengths;
  fuzz::require(!lengths.restore(damaged), "a flipped bit in a length is found");
}

}  // namespace
}  // namespace elastic

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  elastic::fuzz::Input input(data, size);
  const bool marked = input.byte() % 2U == 1;
  const auto content = input.bytes(size / 2);
  const elastic::Bytes bytes(content.begin(), content.end());
  if (marked) {
    elastic::read_marked(bytes, input);
  } else {
    elastic::read_anything(bytes, input);
  }
  return 0;
}
