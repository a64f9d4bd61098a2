#pragma once

#include <array>
#include <cstdint>

#include "elastic/named.hpp"

namespace elastic {

/// How the rate follows the global batch: gamma for a batch of S times the reference.
enum class ScalingRule : std::uint8_t {
  kLinear,      ///< S (Goyal et al. 2017)
  kSquareRoot,  ///< sqrt(S) (Krizhevsky 2014); for SGD: AdamW takes the root of gamma by itself
  kAdaScale,    ///< from 1 to S, by how noisy the gradient is (Johnson et al. 2020; GradientNoise)
};

/// As command lines may call them.
inline constexpr std::array<Named<ScalingRule>, 3> kScalingRules{{
    {"linear", ScalingRule::kLinear},
    {"sqrt", ScalingRule::kSquareRoot},
    {"adascale", ScalingRule::kAdaScale},
}};

}  // namespace elastic
