#pragma once

#include <cstddef>
#include <cuda_runtime_api.h>

#include "collectives/kernels/device/pack_plan.hpp"
#include "collectives/kernels/device/table_slots.hpp"

namespace elastic::kernels::device {

/// Packs tensors in device memory into a bucket, and unpacks them, with one kernel for all of them.
///
/// The table of tensors goes to the kernel with its parameters where it has up to `kParameterRows`
/// rows. A longer one is copied to the device on the same stream, from pinned memory that is used
/// again when the kernel has ended; there are as many of these tables as launches that have not
/// ended, and a new one is allocated when all are in use. That may wait for the device, and so may
/// CUDA when it loads a kernel, with the first launch. `prepare` does both beforehand.
///
/// CUDA graphs: launches can be captured, of any plan. A graph keeps the plan's addresses and
/// scale, and neither the Packer nor the PackPlan need outlive the capture; the tensors and the
/// bucket must be there whenever it runs. A plan of more than `kParameterRows` tensors is captured
/// as several kernels, since a table in device memory would have to stay as long as the graph.
/// `prepare` is to be called before a capture, not in it.
///
/// Belongs to one thread at a time, and to the device that is current whenever it is used.
class Packer {
 public:
  /// Puts the work on `stream` and returns. The memory belongs to the kernel until then. A previous
  /// asynchronous error is returned, too; after an error nothing is said about what the destination
  /// has.
  [[nodiscard]] cudaError_t launch(const PackPlan& plan, cudaStream_t stream);

  /// Loads the kernel of such a plan, and makes room for `launches` under way at once.
  [[nodiscard]] cudaError_t prepare(const PackPlan& plan, std::size_t launches);

 private:
  TableSlots slots_;
};

}  // namespace elastic::kernels::device
