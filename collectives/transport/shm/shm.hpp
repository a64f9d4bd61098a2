#pragma once

#include <cstddef>
#include <memory>

#include "base/status.hpp"
#include "base/unique_fd.hpp"
#include "collectives/transport/ring/byte_ring.hpp"
#include "collectives/transport/shm/arena.hpp"
#include "collectives/transport/stream.hpp"

namespace elastic::transport {

/// Shared memory between two processes of one machine that have a connected AF_UNIX stream socket.
/// The memory is passed over it (SCM_RIGHTS) and has no name: a killed process leaves nothing. Each
/// side's arena goes with it, unless it is null; the other side may read it.

/// Makes the memory and passes it on; does not wait for the other side.
Result<std::shared_ptr<RingMemory>> offer_shm(int socket, std::size_t ring_bytes,
                                              const Arena* arena);

/// Takes the memory that the other side offers, and answers. Call when the socket is readable.
Result<StreamPtr> accept_shm(UniqueFd socket, const Arena* arena);

/// Takes the answer to the offer of `memory`. Call when the socket is readable.
Result<StreamPtr> conclude_shm(UniqueFd socket, std::shared_ptr<RingMemory> memory);

}  // namespace elastic::transport
