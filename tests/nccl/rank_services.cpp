#include "nccl/rank_services.hpp"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <string>

#include "collectives/backend/nccl/communicator/communicator_reaper.hpp"
#include "collectives/backend/nccl/communicator/view_communicators.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "collectives/backend/nccl/nccl_library.hpp"
#include "nccl/host_mover.hpp"

namespace elastic::collectives::nccl {

const NcclStandIn* stand_in() {
  ::setenv("NCCL_STAND_IN_DRIVER", CUDA_STAND_IN, 1);
  void* const handle = ::dlopen(NCCL_STAND_IN, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(::dlerror());
  return static_cast<const NcclStandIn*>(::dlsym(handle, kNcclStandInSymbol));
}

NcclServices services_for_a_rank() {
  NcclServices services;
  auto loaded = NcclLibrary::load(NCCL_STAND_IN);
  if (!loaded.ok()) throw std::runtime_error(loaded.status().message());
  services.library = loaded.value();
  services.communicators = std::make_shared<ViewCommunicators>();
  // The ranks are threads, which share a device.
  static std::atomic<int> ranks{0};
  services.host = std::to_string(ranks++);
  services.reaper = std::make_shared<CommunicatorReaper>();
  services.devices = std::make_shared<SharedDevices>(
      CUDA_STAND_IN, [](device::CudaDevice& device) { return std::make_unique<HostMover>(device); },
      memory_of(*services.library));
  return services;
}

}  // namespace elastic::collectives::nccl
