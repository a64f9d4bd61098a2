#include "collectives/backend/module.hpp"

#include <string>
#include <utility>

#include "base/cuda_driver.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "collectives/backend/nccl/communicator/communicator_reaper.hpp"
#include "collectives/backend/nccl/communicator/view_communicators.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"
#include "collectives/backend/nccl/nccl_backend.hpp"
#include "collectives/backend/nccl/nccl_library.hpp"
#include "collectives/backend/nccl/nccl_settings.hpp"

namespace {

using namespace elastic;
using namespace elastic::collectives;

std::string describe() {
  return "NCCL, built with the headers of " + nccl::version_text(NCCL_VERSION_CODE);
}

Result<std::string> find_library(const std::string& file) {
  const auto library = nccl::NcclLibrary::load(file);
  if (!library.ok()) return library.status();
  return library.value()->describe();
}

/// The state of the process. Never destroyed: devices outlive all contexts, and threads may hang.
struct Started {
  Mutex mutex;
  nccl::NcclServices services ELASTIC_GUARDED_BY(mutex);
};
Started& started() {
  static auto* const the = new Started;
  return *the;
}

Status refuse(const std::string& why) {
  return Status(Code::kUnavailable,
                "the backend 'nccl' cannot be used: " + why +
                    ". Other backends take tensors of devices, too (ELASTIC_BACKEND=native)");
}

/// Finds CUDA and NCCL. The error names the first thing that is missing.
Status start(const ModuleStart& how) {
  log::set_level(how.log_level);
  const CudaDriver driver = CudaDriver::find();
  if (!driver.usable()) return refuse("it serves tensors on CUDA devices, and " + driver.missing);
  if (driver.devices == 0) return refuse("it serves tensors on CUDA devices, and there is none");
  const nccl::NcclSettings settings = nccl::parse_settings(how.settings);
  auto library = nccl::NcclLibrary::load(settings.library);
  if (!library.ok()) return library.status();
  const MutexLock lock(started().mutex);
  nccl::NcclServices& services = started().services;
  services.library = std::move(library).value();
  services.waits = settings.waits;
  services.overlaps = settings.overlaps;
  services.tuning = settings.tuning;
  if (settings.tuning.policy != NcclCtaPolicy::kDefault &&
      services.library->version() < nccl::kCtaPolicyFrom) {
    log::warn("ELASTIC_NCCL_CTA_POLICY has no effect: it needs NCCL {} or later, and {} is NCCL {}",
              nccl::version_text(nccl::kCtaPolicyFrom), services.library->file(),
              nccl::version_text(services.library->version()));
  }
  // No wait of ncclCommShrink was found in NCCL's source that the abort of the parent does not end.
  services.shrinks =
      settings.shrinks == NcclShrink::kAuto && services.library->api().comm_shrink != nullptr;
  if (!services.devices) {
    const bool registers = nccl::registers_memory(settings.registers, services.library->version());
    services.devices = std::make_shared<nccl::SharedDevices>(
        "", &nccl::make_mover, registers ? nccl::memory_of(*services.library) : nccl::NcclMemory());
  }
  if (!services.reaper) services.reaper = std::make_shared<nccl::CommunicatorReaper>();
  if (!services.communicators) {
    services.communicators = std::make_shared<nccl::ViewCommunicators>();
  }
  services.host = settings.host;
  return {};
}

Result<std::unique_ptr<Backend>> make(ModuleView view) {
  log::set_name("rank " + std::to_string(view.mesh->rank()));
  const MutexLock lock(started().mutex);
  return nccl::make_nccl_backend(std::move(view), started().services);
}

/// Waits for the threads that are in NCCL: it is unloaded at the process's end, with CUDA below it,
/// and no thread may be in them then.
void end() {
  MutexLock lock(started().mutex);
  const std::shared_ptr<nccl::CommunicatorReaper> reaper = started().services.reaper;
  const std::shared_ptr<nccl::ViewCommunicators> communicators = started().services.communicators;
  lock.unlock();
  if (!reaper) return;
  communicators->end_retired(*reaper);
  if (const Status stuck = reaper->wait(); !stuck.ok()) log::warn("{}", stuck.message());
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): a symbol's name
extern "C" [[gnu::visibility("default")]] const BackendModule elastic_module = {
    {ELASTIC_MODULE_ABI, describe, find_library},
    /*fixed_membership=*/false,
    /*works_on_devices=*/true,
    /*uses_all_links=*/false,
    /*abort_waits_for_peers=*/true,
    start,
    make,
    end};
