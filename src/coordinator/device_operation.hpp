#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/device_tensors.hpp"
#include "collectives/backend/wire.hpp"
#include "collectives/device/staged_tensors.hpp"
#include "coordinator/operation.hpp"

namespace elastic::coordinator {

/// An operation on tensors of which some are on a device, and are fetched on demand. It offers its
/// tensors to the backend in place. If the backend does not take them there, they are fetched, and
/// the operation on host memory does the rest.
class DeviceOperation : public Operation, private collectives::DeviceTensors {
 public:
  struct Part {
    /// After they have arrived. Null: `tensors` are in host memory, and used in place.
    std::shared_ptr<device::StagedTensors> staged;
    std::vector<TensorView> tensors = {};
  };
  /// Makes the operation on the present addresses of all tensors in host memory. Each call makes
  /// the same operation.
  using MakeOperation = std::function<std::unique_ptr<Operation>(const std::vector<Part>& parts)>;
  /// Called with a result on the device. True if the result goes to the outputs, which then have
  /// room for it.
  using Accepts = std::function<bool(const Members&, const collectives::Payload&)>;

  /// `reads`: the operation has inputs to fetch. Without `accepts`, every result is accepted. After
  /// `unpack`, StagedTensors::send_back brings the result to tensors that do not have it yet.
  DeviceOperation(std::vector<Part> parts, MakeOperation in_host_memory, bool reads = true,
                  Accepts accepts = {});

  bool can_begin(const Members& members) const override { return host_->can_begin(members); }
  bool is_lost(const Members& members) const override { return host_->is_lost(members); }
  void choose_ways(const plan::AllreduceLimits& limits) override;
  collectives::Call call(const Members& members) override { return host_->call(members); }
  collectives::DeviceTensors* on_device() override { return this; }
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
  std::string needs() const override { return host_->needs(); }
  std::vector<ResultPlace> places() const override { return host_->places(); }

 private:
  struct Given {
    ConstTensorView input;
    TensorView output;
  };

  int device() const override { return device_; }
  std::span<const collectives::DeviceTensor> tensors() const override { return on_device_; }
  std::size_t bytes() const override;
  Status to_host(collectives::Payload& payload) override;

  static std::vector<Given> given_in(const std::vector<Part>& parts);
  static int device_of(const std::vector<Given>& given);
  void list_tensors();
  void renew_host();
  Status make_room();
  void are_back(const Status& outcome);
  void bring_back(std::shared_ptr<collectives::DeviceResult> result);

  const std::vector<Part> parts_;
  const MakeOperation in_host_memory_;
  const bool reads_;
  const Accepts accepts_;
  const std::vector<Given> given_;  // as the program gave them
  const int device_;
  std::vector<collectives::DeviceTensor> on_device_;
  std::unique_ptr<Operation> host_;  // without addresses until the tensors are fetched
  plan::AllreduceLimits limits_;
  const Members* members_ = nullptr;  // of the present attempt
};

/// Allreduce of all tensors of `parts` as one unit. `wires` is as for AllreduceOperation.
std::unique_ptr<Operation> device_allreduce(std::vector<DeviceOperation::Part> parts, ReduceOp op,
                                            std::vector<collectives::Wire> wires = {});

}  // namespace elastic::coordinator
