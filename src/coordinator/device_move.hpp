#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/status.hpp"
#include "collectives/backend/device_tensors.hpp"
#include "collectives/device/staged_tensors.hpp"
#include "coordinator/operation.hpp"

namespace elastic::coordinator {

/// A broadcast, allgather or reduce_scatter of tensors that are fetched on demand. The tensors are
/// offered to the backend in place. If it does not take them there, they are fetched, and this
/// becomes an operation on host memory.
class DeviceMoveOperation : public Operation, private collectives::DeviceTensors {
 public:
  struct Parts {
    /// One tensor, after StagedTensors::wait_for_stream.
    std::shared_ptr<device::StagedTensors> staged;
    bool reads = true;  ///< the operation has an input to fetch
    /// Makes the operation on the host memory of `staged`. Each call makes the same operation.
    std::function<std::unique_ptr<Operation>()> in_host_memory;
    /// Called with a result on the device. True if the result goes to the output, which then has
    /// room for it.
    std::function<bool(const Members&, const collectives::Payload&)> accepts;
  };
  explicit DeviceMoveOperation(Parts parts);

  bool can_begin(const Members& members) const override { return host_->can_begin(members); }
  collectives::Call call(const Members& members) override { return host_->call(members); }
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
  std::string needs() const override { return host_->needs(); }

 private:
  int device() const override { return device_; }
  std::span<const collectives::DeviceTensor> tensors() const override { return {&tensor_, 1}; }
  Status to_host(collectives::Payload& payload) override;

  const Parts parts_;
  const collectives::DeviceTensor tensor_;
  const int device_;
  std::unique_ptr<Operation> host_;   // without addresses until the tensors are fetched
  const Members* members_ = nullptr;  // of the present attempt
};

}  // namespace elastic::coordinator
