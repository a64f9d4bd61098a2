#include "base/handshake.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <openssl/crypto.h>

#include "base/hmac.hpp"
#include "base/little_endian.hpp"

namespace elastic::handshake {

namespace {

using little_endian::get;
using little_endian::put;

constexpr std::uint32_t kMagic = 0x31484c45;  // "ELH1"
/// Also raised where an older peer could not read what follows the handshake, a refusal for its
/// version included: it can read this number. 2: control frames have checksums, connections have
/// modes. 3: shared memory is passed both ways.
constexpr std::uint16_t kVersion = 3;
constexpr std::size_t kNonceBytes = 32;
constexpr std::byte kEncrypts{1};  // the one mode that differs from 0

using Proof = HmacSha256;
static_assert(sizeof(Proof) == kProofBytes && sizeof(Proof) == sizeof(SessionKey));
using Nonce = std::array<std::byte, kNonceBytes>;

// hello:     magic 4, version 2, purpose 1, mode 1, nonce 32, context length 4
// challenge: magic 4, version 2, mode 1, zero 1, nonce 32, proof 32

Nonce fresh_nonce() {
  Nonce nonce{};
  random_bytes(nonce);
  return nonce;
}

/// `role` is 'A' or 'D', so that the proof of one side is none for the other, or 'K' for the key.
Result<Proof> prove(const Secret& secret, char role, const Transcript& about) {
  std::string text = "elastic handshake 2 ";
  text += role;
  text += static_cast<char>(about.purpose);
  text += static_cast<char>(about.dialer_mode);
  text += static_cast<char>(about.acceptor_mode);
  for (const Nonce& nonce : {about.dialer_nonce, about.acceptor_nonce}) {
    text.append(reinterpret_cast<const char*>(nonce.data()), nonce.size());
  }
  text += about.context;
  return hmac_sha256(secret.bytes(), std::as_bytes(std::span(text)));
}

std::byte mode_of(bool encrypt) {
  return encrypt ? kEncrypts : std::byte{};
}

Status compare_modes(std::byte own, std::byte other) {
  if (own == other) return {};
  const std::string which = own == kEncrypts
                                ? "this side encrypts its connections, the other does not"
                                : "the other side encrypts its connections, this one does not";
  return Status(Code::kRefused,
                which + ": give server and workers the same --encrypt or ELASTIC_ENCRYPT");
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

Dialer::Dialer(const Secret& secret, Purpose purpose, std::string context, bool encrypt)
    : secret_(secret),
      transcript_{.purpose = purpose,
                  .dialer_mode = mode_of(encrypt),
                  .dialer_nonce = fresh_nonce(),
                  .context = std::move(context)} {}

std::vector<std::byte> Dialer::hello() const {
  const std::string& context = transcript_.context;
  std::vector<std::byte> bytes(kHelloBytes + context.size());
  put(bytes, 0, kMagic);
  put(bytes, 4, kVersion);
  put(bytes, 6, static_cast<std::uint8_t>(transcript_.purpose));
  bytes[7] = transcript_.dialer_mode;
  std::copy(transcript_.dialer_nonce.begin(), transcript_.dialer_nonce.end(), bytes.begin() + 8);
  put(bytes, 40, static_cast<std::uint32_t>(context.size()));
  std::memcpy(bytes.data() + kHelloBytes, context.data(), context.size());
  return bytes;
}

Transcript Dialer::with(std::span<const std::byte, kChallengeBytes> challenge) const {
  Transcript whole = transcript_;
  whole.acceptor_mode = challenge[6];
  std::copy_n(challenge.begin() + 8, kNonceBytes, whole.acceptor_nonce.begin());
  return whole;
}

Result<std::vector<std::byte>> Dialer::answer(
    std::span<const std::byte, kChallengeBytes> challenge) const {
  if (Status status = check_preamble(challenge); !status.ok()) return status;
  const Transcript whole = with(challenge);
  const Result<Proof> expected = prove(secret_, 'A', whole);
  if (!expected.ok()) return expected.status();
  if (CRYPTO_memcmp(expected.value().data(), challenge.data() + 40, kProofBytes) != 0) {
    return Status(Code::kRefused, "wrong secret: the other side does not have this job's secret");
  }
  if (Status status = compare_modes(whole.dialer_mode, whole.acceptor_mode); !status.ok()) {
    return status;
  }
  const Result<Proof> own = prove(secret_, 'D', whole);
  if (!own.ok()) return own.status();
  return std::vector<std::byte>(own.value().begin(), own.value().end());
}

Result<SessionKey> Dialer::session_key(
    std::span<const std::byte, kChallengeBytes> challenge) const {
  return prove(secret_, 'K', with(challenge));
}

Status Dialer::finish(std::span<const std::byte, kVerdictBytes> verdict) {
  if (verdict[0] == std::byte{1}) return {};
  return Status(Code::kRefused, "the other side refused the connection");
}

Acceptor::Acceptor(const Secret& secret, Purpose purpose, bool encrypt)
    : secret_(secret),
      transcript_{.purpose = purpose,
                  .acceptor_mode = mode_of(encrypt),
                  .acceptor_nonce = fresh_nonce(),
                  .context = {}} {}

Result<std::size_t> Acceptor::hello(std::span<const std::byte, kHelloBytes> hello) {
  if (Status status = check_preamble(hello); !status.ok()) return status;
  if (get<std::uint8_t>(hello, 6) != static_cast<std::uint8_t>(transcript_.purpose)) {
    return Status(Code::kProtocol, "a connection for another purpose than this port's");
  }
  transcript_.dialer_mode = hello[7];
  std::copy_n(hello.begin() + 8, kNonceBytes, transcript_.dialer_nonce.begin());
  const auto length = get<std::uint32_t>(hello, 40);
  if (length > kMaxContextBytes) {
    return Status(Code::kProtocol, "a handshake with " + std::to_string(length) +
                                       " bytes of context; at most " +
                                       std::to_string(kMaxContextBytes) + " are allowed");
  }
  return std::size_t{length};
}

Result<std::vector<std::byte>> Acceptor::challenge(std::span<const std::byte> context) {
  transcript_.context.assign(reinterpret_cast<const char*>(context.data()), context.size());
  const Result<Proof> own = prove(secret_, 'A', transcript_);
  if (!own.ok()) return own.status();
  std::vector<std::byte> bytes(kChallengeBytes);
  put(bytes, 0, kMagic);
  put(bytes, 4, kVersion);
  bytes[6] = transcript_.acceptor_mode;
  std::copy(transcript_.acceptor_nonce.begin(), transcript_.acceptor_nonce.end(),
            bytes.begin() + 8);
  std::copy(own.value().begin(), own.value().end(), bytes.begin() + 40);
  return bytes;
}

Status Acceptor::agree() const {
  return compare_modes(transcript_.acceptor_mode, transcript_.dialer_mode);
}

Status Acceptor::check(std::span<const std::byte, kProofBytes> proof) {
  const Result<Proof> expected = prove(secret_, 'D', transcript_);
  if (!expected.ok()) return expected.status();
  if (CRYPTO_memcmp(expected.value().data(), proof.data(), kProofBytes) == 0) return {};
  return Status(Code::kRefused, "wrong secret: the dialer does not have this job's secret");
}

Result<SessionKey> Acceptor::session_key() const {
  return prove(secret_, 'K', transcript_);
}

std::array<std::byte, kVerdictBytes> Acceptor::verdict() {
  return {std::byte{1}};
}

}  // namespace elastic::handshake
