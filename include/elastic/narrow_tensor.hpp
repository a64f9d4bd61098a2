#pragma once

#include "elastic/types.hpp"

namespace elastic {

/// A tensor of f32 or f64 that an allreduce carries as f16 or bf16, in half or a quarter of the
/// bytes: elements are multiplied by `scale` and rounded, added up in the type that they travel in,
/// and the sums widened and divided by `scale`; for an average then by the number of workers. f64
/// is rounded by way of f32.
///
/// NaN and Inf arrive, NaN as the positive one without payload where something was computed. Values
/// above the range of f16 become Inf.
struct NarrowTensor {
  TensorView data;
  /// kF16 or kBF16; or the type of `data`, whichever that is: then it goes as it is.
  DType wire = DType::kF16;
  /// A power of two from 2^-24 to 2^24; 1 where it goes as it is. The same on all workers.
  float scale = 1;
};

}  // namespace elastic
