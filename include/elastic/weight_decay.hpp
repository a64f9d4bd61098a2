#pragma once

#include <cstdint>

namespace elastic {

/// How weights are drawn towards 0.
enum class WeightDecay : std::uint8_t {
  kCoupled,    ///< `decay * w` is added to the gradient (L2 regularisation)
  kDecoupled,  ///< w is multiplied by `1 - rate * decay` (Loshchilov and Hutter 2019)
};

}  // namespace elastic
