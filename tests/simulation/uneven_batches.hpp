#pragma once

#include <cstddef>
#include <cstdint>

#include "contribution.hpp"
#include "nodes.hpp"
#include "scenario.hpp"

namespace elastic::simulation {

// The batches of a step are numbered as its calls are.
inline constexpr std::uint64_t kFirstBatch = 400;
inline constexpr std::uint64_t kFirstOfWorkers = 1000;  ///< numbers of batches, by worker
inline constexpr std::uint64_t kMostBatches = 3;
inline constexpr std::size_t kBatchElements = 40;
inline constexpr std::uint64_t kUnevenEvery = 3;  ///< steps, about, of an uneven run

/// Whether the workers have different numbers of batches in this step.
inline bool is_uneven(const Scenario& scenario, std::uint64_t step) {
  return scenario.uneven && drawn(scenario.seed, step, kFirstBatch) % kUnevenEvery == 0;
}

/// How many a worker has. All workers know it of each other, so that they can check the sums.
inline std::uint64_t batches_of(const Scenario& scenario, std::uint64_t step, Node worker) {
  return drawn(scenario.seed, step, kFirstOfWorkers + worker) % (kMostBatches + 1);
}

/// Those among `workers` that have such a batch: the others have joined before.
inline Nodes with_batch(const Scenario& scenario, std::uint64_t step, std::uint64_t batch,
                        const Nodes& workers) {
  Nodes with;
  for (Node node = 0; node < kMostWorkers; ++node) {
    if (contains(workers, node) && batches_of(scenario, step, node) > batch) with |= only(node);
  }
  return with;
}

}  // namespace elastic::simulation
