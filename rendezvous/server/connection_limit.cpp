#include "rendezvous/server/connection_limit.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "base/descriptor_limit.hpp"
#include "base/log.hpp"

namespace elastic::rendezvous {
namespace {

/// Journal, event log, standard streams, what listens, and peers that are not authenticated yet.
constexpr std::size_t kOtherDescriptors = 32;

}  // namespace

void raise_connection_limit(const ServerOptions& options, std::size_t for_each_worker) {
  const std::size_t limit = raise_descriptor_limit();
  const auto workers =
      static_cast<std::size_t>(std::max(options.membership.initial_np, options.membership.max_np));
  const bool bounded = options.max_connections > 0;
  const std::size_t needed =
      (bounded ? options.max_connections : workers * for_each_worker) + kOtherDescriptors;
  if (needed <= limit) return;
  const std::string what =
      bounded ? fmt::format("{} connections (--max-connections)", options.max_connections)
              : fmt::format("{} workers, {} for each", workers, for_each_worker);
  log::warn(
      "may have {} descriptors and needs {}, for {} and {} more; raise the hard limit "
      "(ulimit -Hn)",
      limit, needed, what, kOtherDescriptors);
}

}  // namespace elastic::rendezvous
