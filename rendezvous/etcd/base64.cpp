#include "rendezvous/etcd/base64.hpp"

#include <cstddef>

#include <openssl/evp.h>

namespace elastic::etcd {

namespace {

constexpr std::size_t kGroupBytes = 3;
constexpr std::size_t kGroupDigits = 4;

const unsigned char* unsigned_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* unsigned_of(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  // OpenSSL writes a zero byte behind the text.
  std::string text((bytes.size() + kGroupBytes - 1) / kGroupBytes * kGroupDigits + 1, '\0');
  const int length =
      EVP_EncodeBlock(unsigned_of(text), unsigned_of(bytes), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty()) return std::string();
  if (text.size() % kGroupDigits != 0) return {};
  const std::size_t digits = text.find_last_not_of('=') + 1;
  const std::size_t padding = text.size() - digits;
  if (padding > 2) return {};
  std::string bytes(text.size() / kGroupDigits * kGroupBytes, '\0');
  const int length =
      EVP_DecodeBlock(unsigned_of(bytes), unsigned_of(text), static_cast<int>(text.size()));
  if (length < 0) return {};
  bytes.resize(static_cast<std::size_t>(length) - padding);
  return bytes;
}

}  // namespace elastic::etcd
