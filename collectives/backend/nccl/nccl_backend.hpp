#pragma once

#include <memory>

#include "collectives/backend/module.hpp"
#include "collectives/backend/nccl/nccl_services.hpp"

namespace elastic::collectives::nccl {

/// Collectives of tensors that all lie on one device by NCCL, where it is ready on all ranks; those
/// on devices otherwise in host memory; and all else, by the native backend of `view`.
std::unique_ptr<Backend> make_nccl_backend(ModuleView view, NcclServices services);

}  // namespace elastic::collectives::nccl
