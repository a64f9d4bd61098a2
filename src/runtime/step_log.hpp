#pragma once

#include <cstdint>

#include "elastic/step_times.hpp"
#include "runtime/step_clock.hpp"

namespace elastic::runtime {

/// At "debug": where the time of the latest step went.
void log_step(std::uint64_t commit, const StepClock& clock);
/// At "info": who was the slowest in the step that was compared last.
void log_slowest(const StepTimes& times);
/// At "info": where the time of all steps went.
void log_steps(const StepTimes& times);

}  // namespace elastic::runtime
