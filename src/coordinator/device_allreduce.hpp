#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/backend/device_tensors.hpp"
#include "collectives/device/staged_tensors.hpp"
#include "coordinator/operation.hpp"

namespace elastic::coordinator {

/// Allreduce, as one unit, of tensors of which some are on a device. Tensors that are fetched on
/// demand are offered to the backend in place. If it does not take them there, they are fetched,
/// and this becomes an AllreduceOperation of tensors in host memory.
class DeviceAllreduceOperation : public Operation, private collectives::DeviceTensors {
 public:
  struct Part {
    std::shared_ptr<device::StagedTensors> staged;  ///< null: `tensors` are in host memory, and
                                                    ///< used in place
    std::vector<TensorView> tensors;
  };
  /// `wires` is as for AllreduceOperation, for the tensors of all parts in order.
  DeviceAllreduceOperation(std::vector<Part> parts, ReduceOp op,
                           std::vector<collectives::Wire> wires = {});

  void choose_ways(const plan::AllreduceLimits& limits) override;
  collectives::Call call(const Members& members) override;
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;

 private:
  int device() const override { return device_; }
  std::span<const collectives::DeviceTensor> tensors() const override { return on_device_; }
  Status to_host(collectives::Payload& payload) override;

  AllreduceOperation in_host_memory() const;
  void find_device();
  void list_tensors();
  void unpack_in_host_memory(const Members& members, const collectives::Payload& payload);
  void are_back(const Status& outcome);

  const std::vector<Part> parts_;
  const ReduceOp op_;
  const std::vector<collectives::Wire> wires_;
  bool on_demand_ = false;
  plan::AllreduceLimits limits_;
  int device_ = -1;
  std::vector<collectives::DeviceTensor> on_device_;
  AllreduceOperation host_;           // without addresses until the tensors are fetched
  const Members* members_ = nullptr;  // of the present attempt
};

}  // namespace elastic::coordinator
