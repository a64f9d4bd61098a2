#pragma once

#include <cstddef>
#include <span>

#include "base/status.hpp"
#include "base/unique_fd.hpp"
#include "benchmarks/peers/peer.hpp"

namespace elastic::bench {

/// A rank's connections: it sends to the next rank and receives from the one before. Two ranks have
/// one connection for both.
class RingSockets {
 public:
  /// All ranks call it alike, and all are connected or none. kUnavailable says why not.
  static Result<RingSockets> connect(const PeerStart& start);

  /// Bytes that went at once; 0 where the connection takes none now.
  Result<std::size_t> send(std::span<const std::byte> bytes) const;
  /// Likewise, bytes that were there. kPeerLost when the other rank has gone.
  Result<std::size_t> receive(std::span<std::byte> bytes) const;
  /// Until one of those that are asked for can go on. kUnavailable after a minute.
  Status wait(bool to_send, bool to_receive) const;

 private:
  RingSockets(UniqueFd next, UniqueFd previous)
      : next_(std::move(next)), previous_(std::move(previous)) {}

  int sending() const { return next_ ? next_.get() : previous_.get(); }
  int receiving() const { return previous_ ? previous_.get() : next_.get(); }

  UniqueFd next_;
  UniqueFd previous_;  ///< of two ranks only one of both is there
};

}  // namespace elastic::bench
