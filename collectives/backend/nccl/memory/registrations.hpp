#pragma once

#include <cstddef>
#include <memory>
#include <set>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/backend/nccl/communicator/communicator.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "collectives/device/block_pool.hpp"

namespace elastic::collectives::nccl {

/// The memory of a lane that is registered with a communicator. NCCL can reduce directly in
/// registered memory (over NVLink by multicast, over InfiniBand in the switches), without a copy to
/// its own buffers.
///
/// NCCL's rules (docs/userguide, usage/bufferreg.rst; its source), and how this class keeps them:
/// - If one rank's buffers are registered, those of all ranks in the call have to be. So the ranks
///   exchange before each operation whether theirs are, and use them only if all are. Registered
///   memory is therefore separate from other memory, and a failure here fails no operation. When
///   the memory of one rank cannot be registered, all ranks stop registering.
/// - The buffers begin at the same offset in the registered memory: a bucket begins with its block.
/// - NCCL connects a set of registered buffers once. Each lane has its own blocks and uses them in
///   turn, so that the ranks use the same sets again.
/// - ncclCommRegister returns at once, even for a communicator that does not block. It only records
///   the memory; the ranks exchange the rest in the first collective that uses it. In 2.19 it
///   depends on the state of the communicator, so it is called only after that is ready.
/// - The end of a communicator, by ncclCommAbort or ncclCommDestroy, deregisters its memory
///   (commFree, since 2.19). This class does not deregister, because after a failure that may wait
///   for peers. The memory must live until then: a communicator keeps its device alive, which owns
///   the memory (CommunicatorPlan::choose_device).
///
/// Owned by the thread that has the turn on the device.
class Registrations {
 public:
  /// \returns a block of at least `bytes` bytes, registered with `communicator`, which is ready.
  /// Empty if it cannot be registered; then it is empty for this communicator from then on. Fails
  /// if there is no memory for it.
  Result<device::BlockPool::Block> take(const std::shared_ptr<Communicator>& communicator,
                                        SharedDevice& device, std::size_t lane, std::size_t bytes,
                                        TimePoint until);
  /// From now on `take` is empty for the communicator of the latest call.
  void stop() { stopped_ = true; }
  /// Whether `take` has had registered memory for the communicator of the latest call.
  bool are_in_use() const { return !stopped_ && !registered_.empty(); }

 private:
  Status add(Communicator& communicator, const device::BlockPool::Block& block, TimePoint until);

  std::weak_ptr<Communicator> with_;  // the communicator of the following fields
  bool stopped_ = false;
  std::set<const std::byte*> registered_;
};

}  // namespace elastic::collectives::nccl
