#pragma once

#include <functional>

#include "elastic/context.hpp"
#include "elastic/state.hpp"
#include "runtime/control.hpp"
#include "runtime/step_clock.hpp"

namespace elastic::runtime {

/// Context::run; `clock` takes the time of the steps. `before_commit` is called before every step
/// boundary: it completes the named operations that were submitted before.
RunOutcome run_training(State& state, const std::function<void()>& body, Control& control,
                        StepClock& clock, const std::function<void()>& before_commit);

}  // namespace elastic::runtime
