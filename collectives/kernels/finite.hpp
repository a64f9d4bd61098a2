#pragma once

#include <cstddef>

#include "elastic/types.hpp"

namespace elastic::kernels {

/// Index of the first of `count` elements that is NaN or infinite; `count` if there is none, as in
/// all integers. `data` need not be aligned.
std::size_t first_not_finite(DType dtype, const void* data, std::size_t count);

}  // namespace elastic::kernels
