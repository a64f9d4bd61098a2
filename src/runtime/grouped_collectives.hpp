#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/device/devices.hpp"
#include "coordinator/device_operation.hpp"
#include "coordinator/grouped_operations.hpp"
#include "elastic/grouped_results.hpp"
#include "elastic/types.hpp"
#include "runtime/operation_runner.hpp"

namespace elastic::runtime {

/// The blocking collectives of several tensors as one unit, but for allreduces. They throw the
/// caller's errors.
///
/// Thread-safe.
class GroupedCollectives {
 public:
  /// `devices` and `runner` must outlive this.
  GroupedCollectives(device::Devices& devices, OperationRunner& runner)
      : devices_(devices), runner_(runner) {}

  ScatteredTensors reduce_scatter(std::span<const ConstTensorView> inputs,
                                  std::span<const TensorView> outputs, ReduceOp op,
                                  CudaStream stream);
  GatheredTensors allgather(std::span<const ConstTensorView> blocks,
                            std::span<const TensorView> outputs, CudaStream stream);

 private:
  /// The memory of one call: the tensors themselves, or host memory for tensors on a device.
  struct Places {
    coordinator::TensorGroup given;
    /// Null: all tensors are in host memory.
    std::shared_ptr<device::StagedTensors> staged = nullptr;

    coordinator::TensorGroup tensors() const {
      return staged ? coordinator::TensorGroup{staged->inputs(), staged->outputs()} : given;
    }
  };
  using Make = std::function<std::unique_ptr<coordinator::Operation>()>;
  using Accepts = coordinator::DeviceOperation::Accepts;

  Places fetch(const char* call, std::span<const ConstTensorView> inputs,
               std::span<const TensorView> outputs, CudaStream stream);
  Contributors run(const Places& places, const Make& make, const Accepts& accepts);
  void bring_back(const Places& places, const std::vector<std::size_t>& bytes);

  device::Devices& devices_;
  OperationRunner& runner_;
};

}  // namespace elastic::runtime
