#pragma once

#include <memory>

#include "collectives/backend/module.hpp"

namespace elastic::collectives {

/// Makes a backend of Gloo's allreduce, allgatherv, broadcast and barrier on the links of `view`.
/// It reduces by this library's kernels, which know all element types and give the same bits as the
/// other backends. `view.native` performs all other calls.
std::unique_ptr<Backend> make_gloo_backend(ModuleView view);

}  // namespace elastic::collectives
