#include "rendezvous/server/connection_limit.hpp"

#include <algorithm>
#include <cstddef>

#include "base/descriptor_limit.hpp"
#include "base/log.hpp"

namespace elastic::rendezvous {
namespace {

/// Beside connections: journal, event log, standard streams, and room for unauthenticated peers.
constexpr std::size_t kOtherDescriptors = 128;

}  // namespace

void raise_connection_limit(const ServerOptions& options) {
  const std::size_t limit = raise_descriptor_limit();
  const auto workers =
      static_cast<std::size_t>(std::max(options.membership.initial_np, options.membership.max_np));
  const bool bounded = options.max_connections > 0;
  const std::size_t connections = bounded ? options.max_connections : workers;
  if (connections + kOtherDescriptors <= limit) return;
  log::warn(
      "may have {} descriptors, too few for {} connections{}; raise the hard limit (ulimit -Hn)",
      limit, connections, bounded ? " (--max-connections)" : " of workers");
}

}  // namespace elastic::rendezvous
