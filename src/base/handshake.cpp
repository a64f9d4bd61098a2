#include "base/handshake.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace elastic::handshake {

namespace {

constexpr std::uint32_t kMagic = 0x31484c45;  // "ELH1"
/// Also raised where an older peer could not read what follows the handshake, a refusal for its
/// version included: it can read this number. 2: control frames have checksums.
constexpr std::uint16_t kVersion = 2;
constexpr std::size_t kNonceBytes = 32;

using Proof = std::array<std::byte, kProofBytes>;
using Nonce = std::array<std::byte, kNonceBytes>;

// hello:     magic 4, version 2, purpose 1, zero 1, nonce 32, context length 4
// challenge: magic 4, version 2, zero 2, nonce 32, proof 32

template <typename T>
void put(std::span<std::byte> into, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    into[at + i] = static_cast<std::byte>((std::uint64_t{value} >> (8 * i)) & 0xffU);
  }
}

template <typename T>
T get(std::span<const std::byte> from, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::to_integer<std::uint64_t>(from[at + i]) << (8 * i);
  }
  return static_cast<T>(value);
}

Nonce fresh_nonce() {
  Nonce nonce{};
  random_bytes(nonce);
  return nonce;
}

/// `role` is 'A' or 'D': the proof of one side is none for the other.
Proof prove(const Secret& secret, char role, Purpose purpose, const Nonce& dialer,
            const Nonce& acceptor, const std::string& context) {
  std::string text = "elastic handshake 1 ";
  text += role;
  text += static_cast<char>(purpose);
  text.append(reinterpret_cast<const char*>(dialer.data()), dialer.size());
  text.append(reinterpret_cast<const char*>(acceptor.data()), acceptor.size());
  text += context;
  Proof proof{};
  unsigned int length = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(proof.data()), &length);
  return proof;
}

Status check_preamble(std::span<const std::byte> bytes) {
  if (get<std::uint32_t>(bytes, 0) != kMagic) {
    return Status(Code::kProtocol,
                  "the other side does not speak elastic's protocol; is the address "
                  "that of an elastic program?");
  }
  const auto version = get<std::uint16_t>(bytes, 4);
  if (version != kVersion) {
    return Status(Code::kProtocol, "the other side speaks version " + std::to_string(version) +
                                       " of the handshake, this one version " +
                                       std::to_string(kVersion) +
                                       "; run the same release of elastic everywhere");
  }
  return {};
}

}  // namespace

Dialer::Dialer(const Secret& secret, Purpose purpose, std::string context)
    : secret_(secret), purpose_(purpose), context_(std::move(context)), nonce_(fresh_nonce()) {}

std::vector<std::byte> Dialer::hello() const {
  std::vector<std::byte> bytes(kHelloBytes + context_.size());
  put(bytes, 0, kMagic);
  put(bytes, 4, kVersion);
  put(bytes, 6, static_cast<std::uint8_t>(purpose_));
  std::copy(nonce_.begin(), nonce_.end(), bytes.begin() + 8);
  put(bytes, 40, static_cast<std::uint32_t>(context_.size()));
  std::memcpy(bytes.data() + kHelloBytes, context_.data(), context_.size());
  return bytes;
}

Result<std::vector<std::byte>> Dialer::answer(
    std::span<const std::byte, kChallengeBytes> challenge) const {
  if (Status status = check_preamble(challenge); !status.ok()) return status;
  Nonce acceptor{};
  std::copy_n(challenge.begin() + 8, kNonceBytes, acceptor.begin());
  const Proof expected = prove(secret_, 'A', purpose_, nonce_, acceptor, context_);
  if (CRYPTO_memcmp(expected.data(), challenge.data() + 40, kProofBytes) != 0) {
    return Status(Code::kRefused, "wrong secret: the other side does not have this job's secret");
  }
  const Proof own = prove(secret_, 'D', purpose_, nonce_, acceptor, context_);
  return std::vector<std::byte>(own.begin(), own.end());
}

Status Dialer::finish(std::span<const std::byte, kVerdictBytes> verdict) {
  if (verdict[0] == std::byte{1}) return {};
  return Status(Code::kRefused, "the other side refused the connection");
}

Acceptor::Acceptor(const Secret& secret, Purpose purpose)
    : secret_(secret), purpose_(purpose), nonce_(fresh_nonce()) {}

Result<std::size_t> Acceptor::hello(std::span<const std::byte, kHelloBytes> hello) {
  if (Status status = check_preamble(hello); !status.ok()) return status;
  if (get<std::uint8_t>(hello, 6) != static_cast<std::uint8_t>(purpose_)) {
    return Status(Code::kProtocol, "a connection for another purpose than this port's");
  }
  std::copy_n(hello.begin() + 8, kNonceBytes, dialer_nonce_.begin());
  const auto length = get<std::uint32_t>(hello, 40);
  if (length > kMaxContextBytes) {
    return Status(Code::kProtocol, "a handshake with " + std::to_string(length) +
                                       " bytes of context; at most " +
                                       std::to_string(kMaxContextBytes) + " are allowed");
  }
  return std::size_t{length};
}

std::vector<std::byte> Acceptor::challenge(std::span<const std::byte> context) {
  context_.assign(reinterpret_cast<const char*>(context.data()), context.size());
  const Proof own = prove(secret_, 'A', purpose_, dialer_nonce_, nonce_, context_);
  std::vector<std::byte> bytes(kChallengeBytes);
  put(bytes, 0, kMagic);
  put(bytes, 4, kVersion);
  std::copy(nonce_.begin(), nonce_.end(), bytes.begin() + 8);
  std::copy(own.begin(), own.end(), bytes.begin() + 40);
  return bytes;
}

Status Acceptor::check(std::span<const std::byte, kProofBytes> proof) {
  const Proof expected = prove(secret_, 'D', purpose_, dialer_nonce_, nonce_, context_);
  if (CRYPTO_memcmp(expected.data(), proof.data(), kProofBytes) == 0) return {};
  return Status(Code::kRefused, "wrong secret: the dialer does not have this job's secret");
}

std::array<std::byte, kVerdictBytes> Acceptor::verdict() {
  return {std::byte{1}};
}

}  // namespace elastic::handshake

namespace elastic {

void prepare_handshakes() {
  OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, nullptr);
}

}  // namespace elastic
