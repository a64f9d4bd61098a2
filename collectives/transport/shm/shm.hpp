#pragma once

#include <cstddef>

#include "base/status.hpp"
#include "base/unique_fd.hpp"
#include "collectives/transport/stream.hpp"

namespace elastic::transport {

/// Shared memory between two processes of one machine that have a connected AF_UNIX stream socket.
/// The memory is passed over it (SCM_RIGHTS) and has no name: a killed process leaves nothing.

/// Makes the memory and passes it on; does not wait for the other side.
Result<StreamPtr> offer_shm(UniqueFd socket, std::size_t ring_bytes);

/// Takes the memory that the other side offers. Call when the socket is readable.
Result<StreamPtr> accept_shm(UniqueFd socket);

}  // namespace elastic::transport
