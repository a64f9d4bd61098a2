#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/plan/plan.hpp"
#include "plan_simulator.hpp"

namespace elastic::plan {

using Bytes = std::vector<std::byte>;

inline std::vector<Plan> plans(int size, const std::function<Plan(int)>& make) {
  std::vector<Plan> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(make(rank));
  return all;
}

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Each rank adds its own hexadecimal digit to each element (kI64), so that a sum shows how often
/// each rank was counted.
inline std::vector<Bytes> digits(int size, std::size_t count) {
  std::vector<Bytes> all;
  for (int rank = 0; rank < size; ++rank) {
    std::vector<std::int64_t> mine(count);
    for (std::size_t i = 0; i < count; ++i) {
      mine[i] = (std::int64_t{1} << (4 * rank)) * (1 + static_cast<std::int64_t>(i % 5));
    }
    all.push_back(bytes_of(mine));
  }
  return all;
}

/// The sum of `digits`.
inline Bytes digits_of_all(int size, std::size_t count) {
  std::vector<std::int64_t> sum(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (int rank = 0; rank < size; ++rank) {
      sum[i] += (std::int64_t{1} << (4 * rank)) * (1 + static_cast<std::int64_t>(i % 5));
    }
  }
  return bytes_of(sum);
}

inline void expect_all_started_before_any_finished(const Simulator& simulator,
                                                   const std::string& what) {
  const auto& started = simulator.started();
  const auto& finished = simulator.finished();
  EXPECT_LE(*std::max_element(started.begin(), started.end()),
            *std::min_element(finished.begin(), finished.end()))
      << what;
}

}  // namespace elastic::plan
