#pragma once

#include "elastic/types.hpp"

namespace elastic::collectives {

/// How the elements of a tensor lie in the data of a call, and travel: as they are, or as halves of
/// what they are. The same on all ranks.
struct Wire {
  DType dtype = DType::kU8;  ///< the tensor's; or kF16 or kBF16 where that is kF32 or kF64
  /// What elements are multiplied by before they are rounded, and results divided by: a power of
  /// two. 1 where they travel as they are.
  float scale = 1;

  bool operator==(const Wire&) const = default;
};

}  // namespace elastic::collectives
