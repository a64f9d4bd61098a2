#pragma once

#include <functional>
#include <optional>

#include "base/layout.hpp"
#include "elastic/context.hpp"
#include "elastic/state.hpp"
#include "runtime/control.hpp"
#include "runtime/step_clock.hpp"

namespace elastic::runtime {

/// What all states that a worker gives to `run` consist of. Belongs to the thread that calls `run`.
class StateLayout {
 public:
  /// Throws Error(kInvalidArgument) where `state` is another than the first one.
  void compare(const Layout& state);

 private:
  std::optional<Layout> first_;
};

/// Context::run; `clock` takes the time of the steps. `before_commit` is called before every step
/// boundary: it completes the named operations that were submitted before.
RunOutcome run_training(State& state, const std::function<void()>& body, Control& control,
                        StepClock& clock, const std::function<void()>& before_commit,
                        StateLayout& job);

}  // namespace elastic::runtime
