#pragma once

#include <utility>

#include <elastic/interrupt.hpp>
#include <nanobind/nanobind.h>

namespace elastic::python {

namespace nb = nanobind;

/// Runs Python's signal handlers, if this is the thread that they run on. An exception of theirs,
/// such as KeyboardInterrupt, leaves as one.
void check_signals();

/// Runs a call of the library that may wait: other threads of Python run meanwhile, and signals are
/// seen to.
template <typename Call>
auto waiting(Call&& call) {
  const nb::gil_scoped_release released;
  const InterruptCheck interruptible(&check_signals);
  return std::forward<Call>(call)();
}

}  // namespace elastic::python
