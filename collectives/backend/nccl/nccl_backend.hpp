#pragma once

#include <chrono>
#include <memory>

#include "collectives/backend/module.hpp"
#include "collectives/backend/nccl/burials.hpp"
#include "collectives/backend/nccl/communicator_state.hpp"
#include "collectives/backend/nccl/nccl_library.hpp"
#include "collectives/backend/nccl/shared_device.hpp"

namespace elastic::collectives::nccl {

/// What a worker's backends share, and how they go about it.
struct NcclServices {
  std::shared_ptr<const NcclLibrary> library;
  std::shared_ptr<SharedDevices> devices;
  std::shared_ptr<Burials> burials;
  bool waits = false;  ///< for NCCL, instead of going through host memory until it is ready
  /// Of communicators. That for the start is long: the operations of the lane carry what the ranks
  /// have to tell each other, and nobody waits meanwhile.
  Deadlines deadlines{.start = std::chrono::minutes(5)};
  /// For a collective; and as long again for each GiB.
  Duration operation = std::chrono::minutes(2);
};

/// Collectives of tensors that all lie on one device by NCCL, where it is ready on all ranks; those
/// on devices otherwise in host memory; and all else, by the native backend of `view`.
std::unique_ptr<Backend> make_nccl_backend(ModuleView view, NcclServices services);

}  // namespace elastic::collectives::nccl
