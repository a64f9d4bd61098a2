#pragma once

#include "elastic/types.hpp"

namespace elastic::collectives {

/// The type in which the elements of a tensor lie in the data of a call, and travel: their own, or
/// a 16-bit type to which they are cast. The same on all ranks.
struct Wire {
  DType dtype = DType::kU8;  ///< the tensor's; or kF16 or kBF16 if that is kF32 or kF64
  /// Factor of the elements before they are rounded, and divisor of the results: a power of two. 1
  /// if the elements travel in their own type.
  float scale = 1;

  bool operator==(const Wire&) const = default;
};

}  // namespace elastic::collectives
