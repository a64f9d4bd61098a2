#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "runtime/control.hpp"
#include "runtime/step_clock.hpp"

namespace elastic::runtime {

/// Compares the times of the present step so far between all members, by an allgather; `clock`
/// keeps the result. All members call it between the same two operations of the unnamed lane:
/// before the `commit`-th commit.
Status compare_steps(std::uint64_t commit, StepClock& clock, Control& control);

}  // namespace elastic::runtime
