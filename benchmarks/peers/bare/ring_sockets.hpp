#pragma once

#include <cstddef>
#include <span>

#include "base/status.hpp"
#include "base/unique_fd.hpp"
#include "benchmarks/peers/peer.hpp"

namespace elastic::bench {

/// A rank's connections in a ring: it sends to the next rank and receives from the previous one.
/// Two ranks use one connection in both directions.
class RingSockets {
 public:
  /// Connects the ring. All ranks call it; it fails on all or on none. kUnavailable says why.
  static Result<RingSockets> connect(const PeerStart& start);

  /// \returns the number of bytes sent without blocking; 0 if the connection takes none now.
  Result<std::size_t> send(std::span<const std::byte> bytes) const;
  /// \returns the number of bytes received without blocking. kPeerLost if the peer has closed it.
  Result<std::size_t> receive(std::span<std::byte> bytes) const;
  /// Waits until a requested direction is ready. kUnavailable after a minute.
  Status wait(bool to_send, bool to_receive) const;

 private:
  RingSockets(UniqueFd next, UniqueFd previous)
      : next_(std::move(next)), previous_(std::move(previous)) {}

  int sending() const { return next_ ? next_.get() : previous_.get(); }
  int receiving() const { return previous_ ? previous_.get() : next_.get(); }

  UniqueFd next_;
  UniqueFd previous_;  ///< with two ranks, a rank has only one of the two
};

}  // namespace elastic::bench
