#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/collective/pattern.hpp"
#include "benchmarks/job/rank_device.hpp"
#include "benchmarks/steps/network_model.hpp"
#include "elastic/context.hpp"
#include "elastic/step_group.hpp"

namespace elastic::bench {

/// The way in which a step allreduces its gradients.
enum class StepKind : std::uint8_t {
  kFused,     ///< named and asynchronous, submitted from another thread
  kUnit,      ///< the same as one unit, by a StepGroup
  kWhole,     ///< all gradients as one tensor: the lower limit
  kBlocking,  ///< one blocking call after another
  kAlone,     ///< not at all: the step of a single worker
};
const char* name_of(StepKind kind);

/// Times on one rank, from the start of the step, in microseconds.
struct StepTime {
  double first_us = 0;  ///< until the first gradient was reduced
  double last_us = 0;   ///< until all gradients were reduced
};

/// The float32 gradients of a network, next to each other in host memory or on a device. Owned by
/// the main thread.
class Gradients {
 public:
  /// `device` is null for host memory.
  Gradients(const NetworkModel& model, int rank, int ranks, const RankDevice* device = nullptr);

  void fill();
  /// Performs one step. The backward pass yields the gradients in the reverse order of the forward
  /// pass. With kFused and kAlone, both passes together take `compute`: the first third is the
  /// forward pass, and the gradients come at equal intervals during the rest. kPeerLost if a worker
  /// was lost. \throws elastic::Error
  Result<StepTime> step(Context& context, StepKind kind, std::chrono::nanoseconds compute = {});
  /// The number of wrong elements on this rank, after `fill` and one step.
  std::int64_t count_wrong() const;

  std::size_t bytes() const { return memory_.bytes(); }
  /// The memory that the StepGroup keeps inputs in.
  std::size_t kept_bytes() const { return unit_ ? unit_->kept_bytes() : 0; }

 private:
  struct Gradient {
    std::string name;
    std::size_t offset = 0;
    std::size_t count = 0;
  };
  TensorView tensor_of(const Gradient& gradient) const;
  /// Calls `yield` with the index of each gradient at the time when the gradient is computed.
  void compute_all(std::chrono::nanoseconds compute,
                   const std::function<void(std::size_t)>& yield) const;
  Result<StepTime> alone(std::chrono::nanoseconds compute) const;
  Result<StepTime> fused(Context& context, std::chrono::nanoseconds compute);
  Result<StepTime> unit(Context& context, std::chrono::nanoseconds compute);
  Result<StepTime> blocking(Context& context);

  const int rank_;
  const int ranks_;
  const Pattern pattern_;
  std::vector<Gradient> gradients_;  // in the order of the backward pass
  const RankDevice* const device_;
  const CudaStream stream_;
  const Allocation memory_;
  const TensorView all_;
  std::optional<StepGroup> unit_;  // from the first such step on
};

}  // namespace elastic::bench
