#pragma once

#include <chrono>

namespace elastic {

/// The only clock of the library: monotonic, so that a corrected wall clock evicts no worker.
using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;
using Milliseconds = std::chrono::milliseconds;

}  // namespace elastic
