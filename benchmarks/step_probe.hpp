#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/gradient_step.hpp"

namespace elastic::bench {

/// Of each step: the means over the ranks, in microseconds. See StepTime.
struct StepTimes {
  std::vector<double> first_us;
  std::vector<double> last_us;
};

/// Measures steps on one context. Belongs to the main thread. All ranks call its functions alike;
/// they return kPeerLost when a worker was lost, and throw elastic::Error.
class StepProbe {
 public:
  StepProbe(Context& context, Gradients& gradients, std::chrono::nanoseconds compute = {})
      : context_(context), gradients_(gradients), compute_(compute) {}

  /// Adds the times of `steps` steps, after `warmup` that do not count.
  Status time(StepKind kind, int warmup, int steps, StepTimes& times);

  /// Adds the times, in microseconds, of `calls` named allreduces of one element each, one at a
  /// time, after one that does not count.
  Status time_agreement(int calls, std::vector<double>& own_us);

  /// Wrong elements on all ranks, in a step of its own.
  Result<std::int64_t> count_wrong(StepKind kind);

 private:
  Context& context_;
  Gradients& gradients_;
  const std::chrono::nanoseconds compute_;
};

}  // namespace elastic::bench
