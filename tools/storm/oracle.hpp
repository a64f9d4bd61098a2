// The contribution of each worker, and with it every result.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>

namespace storm {

using Values = std::vector<std::int64_t>;

inline std::ofstream record;

inline std::uint64_t mix(std::uint64_t x) {  // SplitMix64
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// So small that no sum overflows.
inline std::int64_t value(std::uint64_t worker, std::uint64_t key, std::size_t index) {
  return static_cast<std::int64_t>(mix(worker ^ mix(key ^ mix(index))) >> 24U);
}

inline Values contribution(std::uint64_t worker, std::uint64_t key, std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value(worker, key, i);
  return values;
}
inline Values contribution(std::uint64_t key, std::size_t count) {
  return contribution(elastic::context().id(), key, count);
}

[[noreturn]] inline void wrong(const std::string& what) {
  record << "WRONG " << what << std::endl;
  std::_Exit(9);
}

/// `sum` has the elements from `offset` on of the sum over `workers`.
inline void expect_sum(const Values& sum, std::uint64_t key,
                       std::span<const elastic::WorkerId> workers, const std::string& what,
                       std::size_t offset = 0) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    std::int64_t right = 0;
    for (const auto worker : workers) right += value(worker, key, offset + i);
    if (sum[i] == right) continue;
    wrong(what + ": element " + std::to_string(i) + " of " + std::to_string(sum.size()) + " is " +
          std::to_string(sum[i]) + " and not " + std::to_string(right) + ", with " +
          std::to_string(workers.size()) + " contributors");
  }
}
inline void expect_sum(const Values& sum, std::uint64_t key,
                       const elastic::Contributors& contributors, const std::string& what) {
  expect_sum(sum, key, contributors.workers(),
             what + " in generation " + std::to_string(contributors.generation()));
}

}  // namespace storm
