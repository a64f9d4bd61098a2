#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/network_model.hpp"
#include "benchmarks/pattern.hpp"
#include "benchmarks/rank_device.hpp"
#include "elastic/context.hpp"

namespace elastic::bench {

/// How the gradients of a step are allreduced.
enum class StepKind : std::uint8_t {
  kFused,     ///< named and asynchronous, submitted from another thread
  kWhole,     ///< all as one tensor: what there is to reach
  kBlocking,  ///< one call after another, each waited for
  kAlone,     ///< not at all: what a lone worker's step takes
};
const char* name_of(StepKind kind);

/// On one rank, from the start of the step, in microseconds.
struct StepTime {
  double first_us = 0;  ///< until the first gradient was reduced
  double last_us = 0;   ///< until all were
};

/// The gradients of a network, float32, side by side, in host memory or on a device. Belongs to the
/// main thread.
class Gradients {
 public:
  /// `device` is null where they lie in host memory.
  Gradients(const NetworkModel& model, int rank, int ranks, const RankDevice* device = nullptr);

  void fill();
  /// One step: the backward pass yields the gradients in the reverse order of the forward pass.
  /// kFused and kAlone take `compute` for both passes: the first third is the forward pass, and the
  /// gradients come in equal distances over the rest. Throws elastic::Error; kPeerLost when a
  /// worker was lost.
  Result<StepTime> step(Context& context, StepKind kind, std::chrono::nanoseconds compute = {});
  /// Elements of this rank that are wrong, after `fill` and one step.
  std::int64_t count_wrong() const;

  std::size_t bytes() const { return memory_.bytes(); }

 private:
  struct Gradient {
    std::string name;
    std::size_t offset = 0;
    std::size_t count = 0;
  };
  TensorView tensor_of(const Gradient& gradient) const;
  /// Calls `yield` with the index of each gradient when it is there.
  void compute_all(std::chrono::nanoseconds compute,
                   const std::function<void(std::size_t)>& yield) const;
  Result<StepTime> alone(std::chrono::nanoseconds compute) const;
  Result<StepTime> fused(Context& context, std::chrono::nanoseconds compute);
  Result<StepTime> blocking(Context& context);

  const int rank_;
  const int ranks_;
  const Pattern pattern_;
  std::vector<Gradient> gradients_;  // in the order of the backward pass
  const RankDevice* const device_;
  const CudaStream stream_;
  const Memory memory_;
  const TensorView all_;
};

}  // namespace elastic::bench
