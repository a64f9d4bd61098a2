#include "base/hmac.hpp"

#include <string>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace elastic {

Result<HmacSha256> hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> text) {
  if (key.empty()) {
    return Status(Code::kInternal, "this process has no secret; a forked child has none");
  }
  HmacSha256 made{};
  unsigned int length = 0;
  ERR_clear_error();
  const EVP_MD* const sha256 = EVP_sha256();
  if (sha256 == nullptr ||
      HMAC(sha256, key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(made.data()), &length) == nullptr ||
      length != made.size()) {
    return Status(Code::kInternal, "OpenSSL cannot compute HMAC-SHA256: " + openssl_reason());
  }
  return made;
}

std::string openssl_reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "no reason is given" : reason;
}

}  // namespace elastic
