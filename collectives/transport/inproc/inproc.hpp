#pragma once

#include <cstddef>

#include "base/status.hpp"
#include "collectives/transport/stream.hpp"

namespace elastic::transport {

/// Two connected streams within this process, for workers that are threads.
Result<StreamPair> make_inproc_pair(std::size_t ring_bytes);

}  // namespace elastic::transport
