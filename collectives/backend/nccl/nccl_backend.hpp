#pragma once

#include <memory>

#include "collectives/backend/module.hpp"
#include "collectives/backend/nccl/nccl_services.hpp"

namespace elastic::collectives::nccl {

/// Makes a backend that performs collectives on the tensors of one device by NCCL, if NCCL is ready
/// on all ranks. The native backend of `view` performs the others, in host memory.
std::unique_ptr<Backend> make_nccl_backend(ModuleView view, NcclServices services);

}  // namespace elastic::collectives::nccl
