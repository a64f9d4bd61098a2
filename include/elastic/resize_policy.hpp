#pragma once

#include <array>
#include <cstdint>

#include "elastic/named.hpp"

namespace elastic {

/// The change of the learning rate, and of the momentum gathered so far, when workers join or leave
/// and the global batch changes with them. Below, gamma is the factor on the base rate, and `u` the
/// momentum without a rate in it: `u = mu*u + g; w = w - gamma*eta*u`.
enum class ResizePolicy : std::uint8_t {
  kRamp,       ///< growth is taken over several steps, shrinking at once (see LearningRateRamp)
  kImmediate,  ///< gamma suits the new batch at once; u stays
  kRescale,    ///< as kImmediate, and u is multiplied by gamma before / gamma now: while the base
               ///< rate is constant the update goes on unbroken
  kReset,      ///< as kImmediate, and u begins again at 0
  kNone,       ///< gamma stays 1, whatever the batch
};

/// As Options::resize_policy has them.
inline constexpr std::array<Named<ResizePolicy>, 5> kResizePolicies{{
    {"ramp", ResizePolicy::kRamp},
    {"immediate", ResizePolicy::kImmediate},
    {"rescale", ResizePolicy::kRescale},
    {"reset", ResizePolicy::kReset},
    {"none", ResizePolicy::kNone},
}};

}  // namespace elastic
