#pragma once

#include <string_view>

#include "elastic/learning_rate_ramp.hpp"

namespace elastic::training {

/// Throws Error(kInvalidArgument) unless all are in their range. `where` is the class that the
/// user gave them to.
void require_valid(const LearningRateRamp::Options& options, std::string_view where);

}  // namespace elastic::training
