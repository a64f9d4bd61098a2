#include "collectives/transport/tcp/tls_stream.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace elastic::transport {

namespace {

/// Encrypted before any of it is sent: few enough that the peer need not wait for long, and that
/// they stay in the cache.
constexpr std::size_t kBatchBytes = 4 * TlsSession::kRecordBytes;

}  // namespace

TlsStream::TlsStream(UniqueFd socket, TlsSessionPtr session, Milliseconds link_timeout)
    : TcpStream(std::move(socket), link_timeout), session_(std::move(session)) {
  joined_.reserve(TlsSession::kRecordBytes);
}

Result<std::size_t> TlsStream::write(std::span<const std::span<const std::byte>> parts) {
  if (owed_ == 0) {
    Result<std::size_t> taken = seal(parts);
    if (!taken.ok()) return taken;
    owed_ = taken.value();
  }
  while (!session_->sealed().empty()) {
    const std::array<std::span<const std::byte>, 1> left = {session_->sealed()};
    Result<std::size_t> sent = TcpStream::write(left);
    if (!sent.ok()) return sent;
    if (sent.value() == 0) return std::size_t{0};
    session_->sent(sent.value());
  }
  return std::exchange(owed_, 0);
}

/// Encrypts the beginning of `parts` and returns how much that is. A header shares its record with
/// what follows it; long parts are encrypted in place.
Result<std::size_t> TlsStream::seal(std::span<const std::span<const std::byte>> parts) {
  std::size_t taken = 0;
  joined_.clear();
  for (std::span<const std::byte> part : parts) {
    part = part.first(std::min(part.size(), kBatchBytes - taken));
    taken += part.size();
    if (!joined_.empty() || part.size() < TlsSession::kRecordBytes) {
      const auto head =
          part.first(std::min(part.size(), TlsSession::kRecordBytes - joined_.size()));
      joined_.insert(joined_.end(), head.begin(), head.end());
      part = part.subspan(head.size());
      if (joined_.size() < TlsSession::kRecordBytes) continue;
      if (Status status = session_->seal(joined_); !status.ok()) return status;
      joined_.clear();
    }
    if (Status status = session_->seal(part); !status.ok()) return status;
  }
  if (Status status = session_->seal(joined_); !status.ok()) return status;
  return taken;
}

Result<std::size_t> TlsStream::receive(std::span<std::byte> into) {
  return session_->open(into);
}

bool TlsStream::prepare_wait(bool want_read, bool want_write, short& events) {
  const bool idle = TcpStream::prepare_wait(want_read, want_write, events);
  // The handshake may have taken these from the socket along with its own last bytes.
  return idle && !(want_read && session_->more());
}

}  // namespace elastic::transport
