#pragma once

#include <cstddef>

#include "rendezvous/server/server.hpp"

namespace elastic::rendezvous {

/// Raises this process's limit of descriptors, because every connection needs one; where the
/// process starts the workers, too, each needs `for_each_worker`. A limit that may be too low is
/// warned of at the start, and not when the job has grown.
void raise_connection_limit(const ServerOptions& options, std::size_t for_each_worker = 1);

}  // namespace elastic::rendezvous
