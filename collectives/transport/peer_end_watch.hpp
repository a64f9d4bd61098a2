#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "collectives/transport/linker_context.hpp"
#include "collectives/transport/peer.hpp"

namespace elastic::transport {

/// Finds out that a peer's process has ended, without a link to it.
///
/// The kernel closes a process's listeners with it, and a machine refuses connections to a port
/// without a listener. Links tell less: a network that resets connections resets them, too.
///
/// Belongs to the control thread. A coroutine that it spawns keeps it alive, also before the
/// coroutine begins.
class PeerEndWatch : public std::enable_shared_from_this<PeerEndWatch> {
 public:
  using Ended = std::function<void()>;

  explicit PeerEndWatch(std::shared_ptr<LinkerContext> context);

  /// See Linker::watch_for_end.
  void watch(Peer peer, Ended ended);
  /// Ends all watches so far.
  void forget() { ++watch_; }

 private:
  Task<void> look_for_end(Peer peer, std::uint64_t watch, Ended ended);
  Task<bool> has_ended(const Peer& peer);

  const std::shared_ptr<LinkerContext> context_;
  std::uint64_t watch_ = 0;  // earlier ones are to end
};

}  // namespace elastic::transport
