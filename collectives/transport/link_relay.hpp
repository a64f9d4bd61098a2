#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/transport/data_connection.hpp"
#include "collectives/transport/link_greeting.hpp"
#include "collectives/transport/linker_context.hpp"
#include "collectives/transport/peer.hpp"

namespace elastic::transport {

/// Passes bytes on between two members that do not reach each other, both ways and unread.
///
/// Belongs to the control thread. A coroutine that it spawns keeps it alive, also before the
/// coroutine begins.
class LinkRelay : public std::enable_shared_from_this<LinkRelay> {
 public:
  explicit LinkRelay(std::shared_ptr<LinkerContext> context);

  /// The other members of the present view. Connects only them: a relay must not be a way into
  /// other networks.
  void set_members(const std::vector<Peer>& members);
  /// `from` has proved that it knows the secret, and asks to be connected with its target. Sends it
  /// the verdict, and relays until one end closes or falls silent.
  void serve(DataSocket dialer, const LinkGreeting& from);

 private:
  struct Pair;
  Task<void> relay(DataSocket dialer, LinkGreeting from);
  Task<Result<DataSocket>> reach_target(const LinkGreeting& from, Verdict& verdict);
  Task<void> pump(std::shared_ptr<Pair> pair, bool to_target);
  Task<void> watch(std::shared_ptr<Pair> pair);

  const std::shared_ptr<LinkerContext> context_;
  std::map<std::string, Peer> members_;
  std::size_t pairs_ = 0;
};

}  // namespace elastic::transport
