#pragma once

#include <cstdint>

#include "elastic/diagnostics.hpp"
#include "runtime/step_clock.hpp"

namespace elastic::runtime {

/// Logs at "debug" the time of the latest step by phase.
void log_step(std::uint64_t commit, const StepClock& clock);
/// Logs at "info" the slowest rank in the step that was compared last.
void log_slowest(const StepTimes& times);
/// Logs at "info" the time of all steps by phase.
void log_steps(const StepTimes& times);

}  // namespace elastic::runtime
