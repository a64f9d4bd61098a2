#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.hpp"

namespace elastic::rendezvous {

/// A long text as it travels: a zero byte, which begins no JSON, and the text in the format deflate
/// (RFC 1951), without zlib's header and checksum. Frames have a checksum of their own.
std::string compress(std::string_view text);
bool is_compressed(std::string_view bytes);
/// kProtocol: it is no such text, or is longer than `most` bytes.
Result<std::string> decompress(std::string_view bytes, std::size_t most);

}  // namespace elastic::rendezvous
