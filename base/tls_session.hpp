#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/handshake.hpp"
#include "base/status.hpp"
#include "base/tls_record.hpp"

struct ssl_st;

namespace elastic {

/// TLS 1.3 on a connection after the mutual handshake. The handshake's session key is the
/// pre-shared key, so that no other process can take part. The traffic keys also depend on an
/// ephemeral Diffie-Hellman exchange, so that recorded traffic stays unreadable if the job's secret
/// leaks later. AES-128-GCM; no certificates, no tickets, no early data.
///
/// Lengths of records are checked before they are waited for (`RecordLengths`), so that damage of
/// any kind ends the session at once.
///
/// Reads from the socket itself. Outgoing data collects in `sealed`; the owner of the socket writes
/// it, all of it and in order. Never blocks. Belongs to one thread at a time.
///
/// A connection ends without TLS's close notification: the messages have lengths of their own, so
/// that a forced end is noticed.
class TlsSession {
 public:
  enum class Role : std::uint8_t { kDialer, kAcceptor };

  /// A record carries at most this.
  static constexpr std::size_t kRecordBytes = 16384;
  /// Records sealed with one key: a third of what RFC 8446, 5.5, allows for AES-GCM.
  static constexpr std::uint64_t kRecordsPerKey = 1U << 23;

  /// `socket` is connected and not owned; it must be open in every call of `handshake` and `open`.
  TlsSession(int socket, Role role, const SessionKey& session_key,
             std::uint64_t records_per_key = kRecordsPerKey);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Goes on with TLS's own handshake as far as what has arrived allows; true when it is done.
  /// The data in `sealed` has to be sent afterwards in any case. Fails like `open`; kInternal where
  /// TLS fails before anything has come.
  Result<bool> handshake();

  /// Encrypts all of `bytes`, which belong to one record where they fit. kInternal: TLS fails here.
  Status seal(std::span<const std::byte> bytes);
  /// Encrypted, and not `sent` yet. Valid until the next call.
  std::span<const std::byte> sealed() const {
    return std::span(sealed_).subspan(sent_, whole_ - sent_);
  }
  void sent(std::size_t bytes);

  /// Decrypts what has arrived: up to `into.size()` bytes, and fewer only if there are no more yet.
  /// kPeerLost when the connection has ended or is broken and everything before has been read,
  /// kProtocol when what arrived is not what the peer sent.
  Result<std::size_t> open(std::span<std::byte> into);
  /// Whether `open` may find something though nothing arrives at the socket any more.
  bool more() const;

 private:
  friend struct TlsCallbacks;
  struct Free {
    void operator()(ssl_st* session) const;
  };
  Status not_understood() const;
  static Status failed_here();

  const int socket_;
  SessionKey session_key_;
  const std::uint64_t records_per_key_;
  std::uint64_t records_ = 0;
  std::vector<std::byte> sealed_;
  std::size_t whole_ = 0;  // so much of `sealed_` is whole records
  std::size_t sent_ = 0;   // of these
  RecordLengths lengths_;  // of what comes
  bool heard_ = false;     // something has come, or the end
  bool dry_ = false;       // the last `open` took all there was
  bool ended_ = false;     // the socket said so
  int socket_error_ = 0;   // what else it said
  Status failed_;          // permanently
  std::unique_ptr<ssl_st, Free> ssl_;
};

using TlsSessionPtr = std::unique_ptr<TlsSession>;

}  // namespace elastic
