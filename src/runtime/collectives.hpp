#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.hpp"
#include "collectives/backend/payload.hpp"
#include "collectives/device/devices.hpp"
#include "coordinator/addressed_blocks.hpp"
#include "coordinator/block_operations.hpp"
#include "coordinator/call_root.hpp"
#include "coordinator/device_operation.hpp"
#include "coordinator/operation.hpp"
#include "elastic/context.hpp"
#include "runtime/grouped_collectives.hpp"
#include "runtime/operation_runner.hpp"

namespace elastic::runtime {

/// The blocking collectives but for allreduces, of tensors in host memory and on CUDA devices. They
/// throw the caller's errors. personal_collectives.cpp has those whose result differs by rank.
///
/// Thread-safe.
class Collectives {
 public:
  using TakeGathered = Context::TakeGathered;
  using TakeScattered = Context::TakeScattered;

  /// `devices` and `runner` must outlive this.
  Collectives(device::Devices& devices, OperationRunner& runner)
      : devices_(devices), runner_(runner) {}

  Contributors broadcast(const TensorView& data, coordinator::Root root, CudaStream stream);
  Contributors allgather(const ConstTensorView& block, const TakeGathered& take, CudaStream stream,
                         coordinator::RowShape row);
  GatheredBlocks allgather(const ConstTensorView& block, const TensorView& out, CudaStream stream,
                           coordinator::RowShape row);
  Contributors reduce_scatter(const ConstTensorView& data, ReduceOp op, const TakeScattered& take,
                              CudaStream stream);
  ScatteredPart reduce_scatter(const ConstTensorView& data, const TensorView& out, ReduceOp op,
                               CudaStream stream);

  Contributors alltoall(const BlocksView& blocks, const TakeGathered& take, CudaStream stream);
  GatheredBlocks alltoall(const BlocksView& blocks, const TensorView& out, CudaStream stream);
  Contributors gather(const ConstTensorView& block, const Root& root, const TakeGathered& take,
                      CudaStream stream, coordinator::RowShape row);
  GatheredBlocks gather(const ConstTensorView& block, const TensorView& out, const Root& root,
                        CudaStream stream, coordinator::RowShape row);
  Contributors scatter(const BlocksView& blocks, const Root& root, const TakeScattered& take,
                       CudaStream stream);
  ScatteredPart scatter(const BlocksView& blocks, const TensorView& out, const Root& root,
                        CudaStream stream);
  Contributors reduce(const ConstTensorView& in, const TensorView& out, ReduceOp op,
                      const Root& root, CudaStream stream);
  /// `call` is its name in messages.
  Contributors scan(const char* call, const ConstTensorView& in, const TensorView& out, ReduceOp op,
                    bool exclusive, CudaStream stream);

  /// Those of several tensors.
  GroupedCollectives grouped() { return {devices_, runner_}; }

 private:
  /// The memory of one call: the tensors themselves, or host memory for tensors on a device.
  struct Places {
    ConstTensorView given_input;
    TensorView given_output;
    /// Null: all tensors are in host memory.
    std::shared_ptr<device::StagedTensors> staged = nullptr;

    const ConstTensorView& input() const {
      return staged ? staged->tensors().front().input : given_input;
    }
    const TensorView& output() const {
      return staged ? staged->tensors().front().output : given_output;
    }
  };
  /// Makes the operation on the input and the output of the Places.
  using MakeOperation = OperationRunner::MakeOperation;
  using Accepts = coordinator::DeviceOperation::Accepts;
  using MakeRooted =
      std::function<std::unique_ptr<coordinator::Operation>(coordinator::CallRoot root)>;
  using TryRooted = std::function<std::optional<coordinator::SmallAttempt>(
      const coordinator::CallRoot& root, const coordinator::Members& members)>;

  Places place(const char* call, const ConstTensorView& input, const TensorView& output,
               CudaStream stream);
  /// As `place`, and waits until the input is available.
  Places fetch(const char* call, const ConstTensorView& input, const TensorView& output,
               CudaStream stream);
  void wait_for(const Places& places, bool reads);
  Result<Contributors> run(const Places& places, bool reads, const MakeOperation& make,
                           const Accepts& accepts);
  /// The same of host memory by `small`, if there is one and the lane takes it.
  Result<Contributors> run(const Places& places, bool reads, const MakeOperation& make,
                           const Accepts& accepts,
                           const std::optional<coordinator::SmallAttempt>& small);
  std::optional<Contributors> try_broadcast(const Places& places, coordinator::Root root,
                                            std::size_t bytes);
  Contributors run_rooted(const char* call, const Places& places, const Root& root,
                          const MakeRooted& make, const TryRooted& try_small = {});
  coordinator::Root named(const Root& root, const coordinator::Members& members) const;
  [[noreturn]] void refuse_on_all(std::string why);
  Contributors run_alltoall(const Places& places, const BlocksView& blocks,
                            const TakeGathered& take, coordinator::Room room, bool may_be_small);
  coordinator::AddressedBlocks addressed(const BlocksView& blocks,
                                         const ConstTensorView& data) const;
  void check_on_host(const char* call, const char* which, const ConstTensorView& tensor) const;
  void bring_back(const Places& places, std::size_t bytes);

  device::Devices& devices_;
  OperationRunner& runner_;
};

}  // namespace elastic::runtime
