#pragma once

#include "elastic/types.hpp"

namespace elastic::runtime {

/// Throws Error(kInvalidArgument) for a tensor that is not in host memory, or nowhere.
void check(const ConstTensorView& tensor);

}  // namespace elastic::runtime
