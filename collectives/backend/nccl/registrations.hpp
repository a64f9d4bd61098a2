#pragma once

#include <cstddef>
#include <memory>
#include <set>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/backend/nccl/communicator.hpp"
#include "collectives/backend/nccl/shared_device.hpp"
#include "collectives/device/pinned_pool.hpp"

namespace elastic::collectives::nccl {

/// The memory of a lane that NCCL has registered with a communicator, so that it can reduce in it
/// (over NVLink by multicast, over InfiniBand in the switches) instead of copying it to buffers of
/// its own first.
///
/// What NCCL asks for (docs/userguide, usage/bufferreg.rst), and what its source does:
/// - If one rank's buffers are registered, those of all ranks in the call have to be: so the ranks
///   say before each operation whether theirs is, and go by the least. It is why memory to be
///   registered is no other memory, and why a failure is none of the operation.
/// - They begin at the same offset in the memory: a bucket begins with its block.
/// - A lane's blocks are its own and come in turn, as its operations do: ranks have the same ones
///   together again, and NCCL need not connect them anew.
/// - ncclCommRegister only makes a note of the memory, at once, also where the communicator does
///   not block; what ranks have to tell each other they do in the first collective that uses it. In
///   2.19 it looks at what is there when the communicator is ready, and so it is called then.
/// - A communicator that ends gives back what was registered with it, be it by ncclCommAbort or by
///   ncclCommDestroy (commFree, from 2.19 on). Nothing is deregistered by us: after a failure that
///   may wait for peers, and an abort is never far. Memory must stay until then, and it does: a
///   communicator holds its device (CommunicatorPlan::choose_device), whose memory it is.
///
/// Of the thread that has the turn on the device.
class Registrations {
 public:
  /// A block of at least so many bytes, registered with `communicator`, which is ready. Empty:
  /// there is none, and with this communicator will not be any more.
  device::PinnedPool::Block take(const std::shared_ptr<Communicator>& communicator,
                                 SharedDevice& device, std::size_t lane, std::size_t bytes,
                                 TimePoint until);

 private:
  Status add(Communicator& communicator, const device::PinnedPool::Block& block, TimePoint until);

  std::weak_ptr<Communicator> with_;  // of which the following is true
  bool failed_ = false;
  std::set<const std::byte*> registered_;
};

}  // namespace elastic::collectives::nccl
