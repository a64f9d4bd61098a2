#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "base/status.hpp"
#include "collectives/device/staged_tensors.hpp"
#include "coordinator/device_operation.hpp"
#include "coordinator/operation.hpp"
#include "elastic/types.hpp"

namespace elastic::runtime {

/// The memory of a named call of one tensor: its tensors themselves, or, where one is on a CUDA
/// device, the host memory that they go through. A value that lives as long as the call.
class NamedPlaces {
 public:
  using Staged = std::shared_ptr<device::StagedTensors>;
  /// Copies at most so many bytes of the result to the device: Context::Impl::bring_back.
  using BringBack = std::function<Status(std::size_t bytes)>;
  using MakeOperation = std::function<std::unique_ptr<coordinator::Operation>()>;
  using Accepts = coordinator::DeviceOperation::Accepts;

  /// `staged`: null if both tensors are in host memory; `bring_back` is not called then.
  NamedPlaces(const ConstTensorView& input, const TensorView& output, Staged staged,
              BringBack bring_back)
      : input_(input),
        output_(output),
        staged_(std::move(staged)),
        bring_back_(std::move(bring_back)) {}

  const Staged& staged() const { return staged_; }
  /// In host memory. Without an address before an operation asks for it.
  const ConstTensorView& input() const {
    return staged_ ? staged_->tensors().front().input : input_;
  }
  const TensorView& output() const { return staged_ ? staged_->tensors().front().output : output_; }

  /// The operation that `make` makes on input and output, or one that offers the tensors to the
  /// backend in place first. `reads`, `accepts`: see DeviceOperation.
  std::unique_ptr<coordinator::Operation> operation(MakeOperation make, bool reads,
                                                    Accepts accepts) const {
    if (!staged_ || staged_->when() == device::Fetch::kAtOnce) return make();
    return std::make_unique<coordinator::DeviceOperation>(
        std::vector<coordinator::DeviceOperation::Part>{{staged_}},
        [make = std::move(make)](const auto& /*parts*/) { return make(); }, reads,
        std::move(accepts));
  }

  /// Copies the first `bytes` of the result to an output on a device.
  Status bring_back(std::size_t bytes) const { return staged_ ? bring_back_(bytes) : Status(); }

 private:
  ConstTensorView input_;
  TensorView output_;
  Staged staged_;
  BringBack bring_back_;
};

}  // namespace elastic::runtime
