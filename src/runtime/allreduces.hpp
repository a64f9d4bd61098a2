#pragma once

#include <span>
#include <utility>
#include <vector>

#include "collectives/backend/wire.hpp"
#include "collectives/device/devices.hpp"
#include "elastic/contributors.hpp"
#include "elastic/cuda_stream.hpp"
#include "elastic/narrow_tensor.hpp"
#include "elastic/types.hpp"
#include "runtime/worker.hpp"

namespace elastic::runtime {

/// The blocking allreduces, but for that of one tensor in host memory, which counts nanoseconds:
/// those of tensors on CUDA devices, of several tensors, and of what travels as halves. They throw
/// what the caller sees.
///
/// Any thread.
class Allreduces {
 public:
  /// `devices` outlive this.
  Allreduces(device::Devices& devices, Worker worker)
      : devices_(devices), worker_(std::move(worker)) {}

  /// Of tensors of which some lie on a device. They have been checked, as for `grouped`.
  Contributors staged(std::span<const ConstTensorView> in, std::span<const TensorView> out,
                      ReduceOp op, CudaStream stream,
                      const std::vector<collectives::Wire>& wires = {});
  /// `wires`: of all tensors, or empty where all travel as they are.
  Contributors grouped(std::span<const TensorView> tensors, ReduceOp op, CudaStream stream,
                       const std::vector<collectives::Wire>& wires = {});
  Contributors narrow(std::span<const NarrowTensor> tensors, ReduceOp op, CudaStream stream);

 private:
  device::Devices& devices_;
  const Worker worker_;
};

}  // namespace elastic::runtime
