#pragma once

#include <elastic/learning_rate.hpp>

namespace elastic::fault {

inline constexpr double kBatchPerWorker = 32;

/// The options of all workers of a training, from which the test computes the expected rates.
inline LearningRate::Options learning_rate_options(ResizePolicy policy) {
  return {.schedule = Schedule::cosine(1, 500 * kBatchPerWorker, 0.1),
          .batch_reference = kBatchPerWorker,
          .policy = policy};
}

}  // namespace elastic::fault
