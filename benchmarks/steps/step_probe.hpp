#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/steps/gradient_step.hpp"

namespace elastic::bench {

/// The times of each step: means over the ranks, in microseconds. See StepTime.
struct StepTimes {
  std::vector<double> first_us;
  std::vector<double> last_us;
};

/// Measures steps on one context. Owned by the main thread. All ranks call its functions with the
/// same arguments. They return kPeerLost if a worker was lost, and throw elastic::Error.
class StepProbe {
 public:
  StepProbe(Context& context, Gradients& gradients, std::chrono::nanoseconds compute = {})
      : context_(context), gradients_(gradients), compute_(compute) {}

  /// Performs `warmup` steps, then `steps` steps, and appends the times of the latter.
  Status time(StepKind kind, int warmup, int steps, StepTimes& times);

  /// Makes one named allreduce of one element to warm up, then `calls` of them one at a time, and
  /// appends the times of the latter in microseconds.
  Status time_agreement(int calls, std::vector<double>& own_us);

  /// The number of wrong elements on all ranks, after a further step.
  Result<std::int64_t> count_wrong(StepKind kind);

 private:
  Context& context_;
  Gradients& gradients_;
  const std::chrono::nanoseconds compute_;
};

}  // namespace elastic::bench
