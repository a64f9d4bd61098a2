#pragma once

#include <functional>

#include "elastic/context.hpp"
#include "elastic/state.hpp"
#include "runtime/control.hpp"

namespace elastic::runtime {

/// Context::run. `before_commit` is called before every step boundary: it completes what named
/// operations are under way.
RunOutcome run_training(State& state, const std::function<void()>& body, Control& control,
                        const std::function<void()>& before_commit);

}  // namespace elastic::runtime
