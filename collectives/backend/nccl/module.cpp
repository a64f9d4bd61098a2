#include "collectives/backend/module.hpp"

#include "base/cuda_driver.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"
#include "collectives/backend/nccl/nccl_library.hpp"

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

Status refuse(const std::string& why) {
  return Status(Code::kUnavailable,
                "the backend 'nccl' cannot be used: " + why +
                    ". Other backends take tensors of devices, too (ELASTIC_BACKEND=native)");
}

/// What NCCL would serve does not come to backends yet: it is copied to the host before. So all
/// that is left is to say what is missing, the first thing first.
Status start(const ModuleStart&) {
  const CudaDriver driver = CudaDriver::find();
  if (!driver.usable()) return refuse("it serves tensors on CUDA devices, and " + driver.missing);
  if (driver.devices == 0) return refuse("it serves tensors on CUDA devices, and there is none");
  return refuse(
      "this version of elastic makes its communicators, but no collectives with them yet");
}

Result<std::unique_ptr<Backend>> make(ModuleView) {
  return start({});
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): a symbol's name
extern "C" [[gnu::visibility("default")]] const BackendModule elastic_module = {
    {ELASTIC_MODULE_ABI, describe, find_library}, /*fixed_membership=*/false, start, make};
