#pragma once

#include <cstddef>
#include <vector>

#include "base/tls_session.hpp"
#include "collectives/transport/tcp/tcp_stream.hpp"

namespace elastic::transport {

/// A stream over a TCP socket on which TLS has been established.
///
/// Bytes count as written when the kernel has them, encrypted. Data that `write` did not take has
/// to come again first in the next call: some of it may be encrypted already. A `Link` does so.
class TlsStream : public TcpStream {
 public:
  /// `session` has done its handshake on `socket`.
  TlsStream(UniqueFd socket, TlsSessionPtr session,
            Milliseconds link_timeout = kDefaultLinkTimeout);

  Result<std::size_t> write(std::span<const std::span<const std::byte>> parts) override;
  bool prepare_wait(bool want_read, bool want_write, short& events) override;
  /// Nothing that was damaged gets through TLS.
  bool needs_checksum() const override { return false; }

 private:
  Result<std::size_t> receive(std::span<std::byte> into) override;
  Result<std::size_t> seal(std::span<const std::span<const std::byte>> parts);

  TlsSessionPtr session_;
  std::vector<std::byte> joined_;  // parts that share a record
  std::size_t owed_ = 0;           // of what comes, these are encrypted but not all sent
};

}  // namespace elastic::transport
