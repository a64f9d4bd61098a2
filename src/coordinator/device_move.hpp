#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.hpp"
#include "collectives/backend/device_tensors.hpp"
#include "collectives/device/staged_call.hpp"
#include "coordinator/operation.hpp"

namespace elastic::coordinator {

/// A broadcast, allgather or reduce_scatter of tensors that are fetched on demand: it is given to
/// the backend where they lie. What the backend does not want so is fetched, and from then on this
/// is an operation on host memory.
class DeviceMoveOperation : public Operation, private collectives::DeviceTensors {
 public:
  struct Parts {
    /// After StagedCall::wait_for_stream. Outlives this.
    device::StagedCall& staged;
    bool reads = true;  ///< there is an input to fetch
    /// The operation on host memory, where `staged` has it now. Each time the same.
    std::function<std::unique_ptr<Operation>()> in_host_memory;
    /// The result lies on the device: whether it goes to the output, which has room for it then.
    std::function<bool(const Members&, const collectives::Payload&)> accepts;
  };
  explicit DeviceMoveOperation(Parts parts);

  bool can_begin(const Members& members) const override { return host_->can_begin(members); }
  collectives::Call call(const Members& members) override { return host_->call(members); }
  void pack(const Members& members, collectives::Payload& payload) override;
  void unpack(const Members& members, const collectives::Payload& payload) override;
  std::string needs() const override { return host_->needs(); }

  /// After `unpack`: whether the result that lay on the device is where it belongs, or why it
  /// cannot be brought there, or to host memory. Nothing: it is in host memory, as `staged` has it.
  const std::optional<Status>& back() const { return back_; }

 private:
  int device() const override { return device_; }
  std::span<const collectives::DeviceTensor> tensors() const override { return {&tensor_, 1}; }
  Status to_host(collectives::Payload& payload) override;

  const Parts parts_;
  const collectives::DeviceTensor tensor_;
  const int device_;
  std::unique_ptr<Operation> host_;   // without addresses, for what is not fetched
  const Members* members_ = nullptr;  // of the attempt
  std::optional<Status> back_;
};

}  // namespace elastic::coordinator
