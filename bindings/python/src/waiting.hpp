#pragma once

#include <optional>
#include <utility>

#include <elastic/interrupt.hpp>

#include "interpreter_lock.hpp"

namespace elastic::python {

/// Whether this is the thread that Python's signal handlers run on.
bool is_signals_thread();

/// Runs Python's signal handlers. An exception of theirs, such as KeyboardInterrupt, leaves as one.
void check_signals();

/// Runs a call of the library that may wait: other threads of Python run meanwhile, and signals are
/// seen to.
template <typename Call>
auto waiting(Call&& call) {
  const ReleasedLock released;
  std::optional<InterruptCheck> interruptible;
  if (is_signals_thread()) interruptible.emplace(&check_signals);
  return std::forward<Call>(call)();
}

}  // namespace elastic::python
