#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/status.hpp"

namespace elastic {

using HmacSha256 = std::array<std::byte, 32>;

/// HMAC-SHA256 (RFC 2104), computed by OpenSSL. kInternal, with OpenSSL's reason, if OpenSSL fails
/// or the key is empty.
Result<HmacSha256> hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> text);

/// OpenSSL's message for its last failure in this thread.
std::string openssl_reason();

}  // namespace elastic
