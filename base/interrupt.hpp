#pragma once

#include "base/clock.hpp"

namespace elastic {

/// The time between two calls of a thread's InterruptCheck while it waits.
inline constexpr Milliseconds kInterruptCheckEvery{100};

/// \returns whether the calling thread has an InterruptCheck: then it waits for no longer than
/// kInterruptCheckEvery at a time.
bool has_interrupt_check() noexcept;

/// Calls it, if there is one. Requires that the thread holds no lock: what is called may wait for a
/// lock of the program, whose owner may wait for one of ours.
void check_interrupt();

}  // namespace elastic
