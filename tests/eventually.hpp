#pragma once

#include <chrono>
#include <thread>

namespace elastic::testing {

/// Polls for `condition`: for what other processes do, where there is no event to wait for. Sleeps
/// in between, so that they have the processors.
template <typename Condition>
bool eventually(std::chrono::milliseconds deadline, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace elastic::testing
