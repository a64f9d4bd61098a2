#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "tests/eventually.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {

/// Repetitions of a test that sweeps something: `usual`, or as many as FAULT_TEST_RUNS says, up to
/// `most`.
inline int runs(int usual, int most = 1000000) {
  const char* asked = std::getenv("FAULT_TEST_RUNS");
  return asked == nullptr ? usual : std::min(most, std::atoi(asked));
}

/// Limit of tests that need a new worker in each run of one job: the oracle has digits for 18.
inline constexpr int kMostJoiners = 12;

/// The first seed; FAULT_TEST_SEED repeats a failure.
inline std::uint64_t first_seed() {
  const char* asked = std::getenv("FAULT_TEST_SEED");
  return asked == nullptr ? 1 : std::strtoull(asked, nullptr, 10);
}

/// Whether all jobs encrypt: FAULT_TEST_ENCRYPT=1.
inline bool encrypted() {
  const char* asked = std::getenv("FAULT_TEST_ENCRYPT");
  return asked != nullptr && *asked == '1';
}

/// Far longer than anything takes that does not hang.
inline constexpr std::chrono::seconds kLong{30 * (kSlowness > 1 ? 2 : 1)};

}  // namespace elastic::testing
