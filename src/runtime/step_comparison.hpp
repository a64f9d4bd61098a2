#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "runtime/control.hpp"
#include "runtime/step_clock.hpp"

namespace elastic::runtime {

/// All members tell each other what the present step took so far, and `clock` keeps it. Everybody
/// calls it between the same two operations of the unnamed lane: before the `commit`-th commit.
Status compare_steps(std::uint64_t commit, StepClock& clock, Control& control);

}  // namespace elastic::runtime
