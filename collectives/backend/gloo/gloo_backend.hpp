#pragma once

#include <memory>

#include "collectives/backend/module.hpp"

namespace elastic::collectives {

/// Gloo's allreduce, allgatherv, broadcast and barrier on the links of `view`, with our kernels for
/// the arithmetic: they know all element types, and give the bits that the other backends give.
/// Everything else is left to `view.native`.
std::unique_ptr<Backend> make_gloo_backend(ModuleView view);

}  // namespace elastic::collectives
