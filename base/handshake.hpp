#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/secret.hpp"
#include "base/status.hpp"

namespace elastic {

/// Mutual authentication of a fresh connection by the job's secret, without I/O: the owner of the
/// socket carries the bytes. HMAC-SHA256 over role, purpose, both modes, both nonces and the
/// dialer's context, so that a proof can neither be reflected, nor replayed, nor used on another
/// kind of connection.
///
///   dialer -> acceptor   hello      magic, version, purpose, mode, nonce, context's length
///                        context
///   acceptor -> dialer   challenge  magic, version, mode, nonce, acceptor's proof
///   dialer -> acceptor   proof      dialer's proof
///   acceptor -> dialer   verdict    one byte, 1
///
/// The context (the dialer, the worker that it dials, the lane) is opaque here. The acceptor hands
/// it out only after the proof was right.
///
/// The mode says whether a side encrypts its connections. If both do, a `TlsSession` with the
/// session key follows. If only one does, both learn it from hello and challenge.
///
/// Every function that needs a proof fails with kInternal if OpenSSL cannot compute one: no
/// connection is accepted on a proof that was not computed. `check_openssl` finds that out early.
namespace handshake {

/// The purpose of a connection; a proof for one purpose is worthless for another.
enum class Purpose : std::uint8_t { kControl = 1, kData = 2 };

inline constexpr std::size_t kHelloBytes = 44;  ///< fixed part; the context follows
inline constexpr std::size_t kMaxContextBytes = 1024;
inline constexpr std::size_t kChallengeBytes = 72;
inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kVerdictBytes = 1;

/// The subject of a proof.
struct Transcript {
  Purpose purpose{};
  std::byte dialer_mode{};
  std::byte acceptor_mode{};
  std::array<std::byte, 32> dialer_nonce{};
  std::array<std::byte, 32> acceptor_nonce{};
  std::string context;
};

class Dialer {
 public:
  Dialer(const Secret& secret, Purpose purpose, std::string context, bool encrypt = false);
  /// Hello and context, to be sent first.
  std::vector<std::byte> hello() const;
  /// Checks the acceptor's proof; returns the dialer's. kRefused when the secrets differ or only
  /// one side encrypts, kProtocol when the other side is no elastic of this version; the message
  /// says which.
  Result<std::vector<std::byte>> answer(
      std::span<const std::byte, kChallengeBytes> challenge) const;
  /// The key of this connection alone; the acceptor has the same. After `answer` succeeded.
  Result<SessionKey> session_key(std::span<const std::byte, kChallengeBytes> challenge) const;
  /// Ok if the acceptor has accepted the connection.
  static Status finish(std::span<const std::byte, kVerdictBytes> verdict);

 private:
  Transcript with(std::span<const std::byte, kChallengeBytes> challenge) const;

  Secret secret_;
  Transcript transcript_;  ///< without the acceptor's part
};

class Acceptor {
 public:
  Acceptor(const Secret& secret, Purpose purpose, bool encrypt = false);
  /// Checks the fixed part; returns how many bytes of context follow (bounded).
  Result<std::size_t> hello(std::span<const std::byte, kHelloBytes> hello);
  /// Takes the context; returns the challenge to send.
  Result<std::vector<std::byte>> challenge(std::span<const std::byte> context);
  /// kRefused if only one side encrypts. Call it once the challenge is sent, because the dialer
  /// learns of it from the challenge.
  Status agree() const;
  /// kRefused when the dialer does not know the secret; otherwise send `verdict()`.
  Status check(std::span<const std::byte, kProofBytes> proof);
  static std::array<std::byte, kVerdictBytes> verdict();
  /// Only after `check` succeeded.
  const std::string& context() const { return transcript_.context; }
  /// The key of this connection; the dialer has the same. Only after `check` succeeded.
  Result<SessionKey> session_key() const;

 private:
  Secret secret_;
  Transcript transcript_;
};

}  // namespace handshake

}  // namespace elastic
