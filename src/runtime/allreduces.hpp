#pragma once

#include <span>
#include <vector>

#include "collectives/backend/wire.hpp"
#include "collectives/device/devices.hpp"
#include "elastic/compression.hpp"
#include "elastic/results.hpp"
#include "elastic/scale.hpp"
#include "elastic/types.hpp"
#include "runtime/operation_runner.hpp"

namespace elastic::runtime {

/// The blocking allreduces: of tensors on CUDA devices, of several tensors, and of tensors in a
/// wire dtype. They throw the caller's errors. The allreduce of one tensor in host memory is in
/// Context, because nanoseconds count there.
///
/// Thread-safe.
class Allreduces {
 public:
  /// `devices` and `runner` must outlive this.
  Allreduces(device::Devices& devices, OperationRunner& runner)
      : devices_(devices), runner_(runner) {}

  /// Allreduce of tensors of which some are on a device. They have been checked, as for `grouped`.
  Contributors staged(std::span<const ConstTensorView> in, std::span<const TensorView> out,
                      ReduceOp op, CudaStream stream,
                      const std::vector<collectives::Wire>& wires = {}, Scale scale = Scale(1, 1));
  /// `wires` has one entry for each tensor; empty: all travel in their own types.
  Contributors grouped(std::span<const TensorView> tensors, ReduceOp op, CudaStream stream,
                       const std::vector<collectives::Wire>& wires = {}, Scale scale = Scale(1, 1));
  Contributors cast(std::span<const CastTensor> tensors, ReduceOp op, CudaStream stream);

 private:
  device::Devices& devices_;
  OperationRunner& runner_;
};

}  // namespace elastic::runtime
