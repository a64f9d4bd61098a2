#pragma once

#include "rendezvous/server/server.hpp"

namespace elastic::rendezvous {

/// Raises this process's limit of descriptors, because every connection needs one. A limit that may
/// be too low is warned of at the start, and not when the job has grown.
void raise_connection_limit(const ServerOptions& options);

}  // namespace elastic::rendezvous
