#pragma once

#include <functional>
#include <optional>

#include "base/layout.hpp"
#include "elastic/context.hpp"
#include "elastic/state.hpp"
#include "runtime/control.hpp"
#include "runtime/step_clock.hpp"

namespace elastic::runtime {

/// The layout that all states given to `run` by a worker have. Belongs to the thread that calls
/// `run`.
class StateLayout {
 public:
  /// Throws Error(kInvalidArgument) if `state` differs from the first one.
  void compare(const Layout& state);

 private:
  std::optional<Layout> first_;
};

/// Implements Context::run; `clock` measures the steps. `before_commit` is called before every step
/// boundary, and completes the named operations that were submitted before.
RunOutcome run_training(State& state, const std::function<void()>& body, Control& control,
                        StepClock& clock, const std::function<void()>& before_commit,
                        StateLayout& job);

}  // namespace elastic::runtime
