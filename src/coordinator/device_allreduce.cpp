#include "coordinator/device_allreduce.hpp"

#include <algorithm>
#include <utility>

namespace elastic::coordinator {

namespace {

std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// The tensors of all parts: `which` of staged tensors, others as they were given in host memory.
template <typename View>
std::vector<View> collect(const std::vector<DeviceAllreduceOperation::Part>& parts,
                          View device::StagedTensor::*which) {
  std::vector<View> all;
  for (const auto& part : parts) {
    if (part.staged) {
      for (const device::StagedTensor& tensor : part.staged->tensors()) {
        all.push_back(tensor.*which);
      }
    } else {
      all.insert(all.end(), part.tensors.begin(), part.tensors.end());
    }
  }
  return all;
}

}  // namespace

DeviceAllreduceOperation::DeviceAllreduceOperation(std::vector<Part> parts, ReduceOp op,
                                                   std::vector<collectives::Wire> wires)
    : parts_(std::move(parts)),
      op_(op),
      wires_(std::move(wires)),
      on_demand_(std::any_of(parts_.begin(), parts_.end(),
                             [](const Part& part) {
                               return part.staged &&
                                      part.staged->when() == device::Fetch::kOnDemand;
                             })),
      host_(collect(parts_, &device::StagedTensor::input),
            collect(parts_, &device::StagedTensor::output), op_, wires_) {
  if (on_demand_) find_device();
}

/// Sets `device_` to the device of all tensors that are not empty; to -1 if they have none in
/// common.
void DeviceAllreduceOperation::find_device() {
  for (const TensorView& tensor : collect(parts_, &device::StagedTensor::given_output)) {
    if (tensor.bytes() == 0) continue;
    const int its = tensor.device.kind == Device::Kind::kCuda ? tensor.device.index : -1;
    if (its < 0 || (device_ >= 0 && its != device_)) {
      device_ = -1;
      return;
    }
    device_ = its;
  }
}

void DeviceAllreduceOperation::choose_ways(const plan::AllreduceLimits& limits) {
  limits_ = limits;
  host_.choose_ways(limits);
  list_tensors();
}

void DeviceAllreduceOperation::list_tensors() {
  if (device_ < 0) return;
  const auto inputs = collect(parts_, &device::StagedTensor::given_input);
  const auto outputs = collect(parts_, &device::StagedTensor::given_output);
  on_device_.clear();
  for (const AllreduceOperation::Place& place : host_.places()) {
    const TensorView& output = outputs[place.tensor];
    if (output.bytes() == 0) continue;
    collectives::DeviceTensor tensor{
        output.dtype,         output.count, address(inputs[place.tensor].data),
        address(output.data), place.offset, place.divided};
    if (!wires_.empty()) tensor.wire = wires_[place.tensor];
    on_device_.push_back(tensor);
  }
}

collectives::Call DeviceAllreduceOperation::call(const Members& members) {
  return host_.call(members);
}

void DeviceAllreduceOperation::pack(const Members& members, collectives::Payload& payload) {
  members_ = &members;
  if (on_demand_) {
    payload.form = collectives::OnDevice{this};
  } else {
    host_.pack(members, payload);
  }
}

/// The operation on host memory, with the present addresses of the tensors.
AllreduceOperation DeviceAllreduceOperation::in_host_memory() const {
  AllreduceOperation operation(collect(parts_, &device::StagedTensor::input),
                               collect(parts_, &device::StagedTensor::output), op_, wires_);
  operation.choose_ways(limits_);
  return operation;
}

Status DeviceAllreduceOperation::to_host(collectives::Payload& payload) {
  for (const Part& part : parts_) {
    if (!part.staged) continue;
    if (Status status = part.staged->fetch(); !status.ok()) return status;
  }
  host_ = in_host_memory();
  host_.pack(*members_, payload);
  return {};
}

void DeviceAllreduceOperation::unpack(const Members& members, const collectives::Payload& payload) {
  if (collectives::DeviceResult* const result = payload.device_result()) {
    are_back(result->unpack());
  } else {
    unpack_in_host_memory(members, payload);
  }
}

void DeviceAllreduceOperation::unpack_in_host_memory(const Members& members,
                                                     const collectives::Payload& payload) {
  for (const Part& part : parts_) {
    if (!on_demand_ || !part.staged) continue;
    if (Status status = part.staged->make_room(); !status.ok()) return are_back(status);
  }
  if (on_demand_) host_ = in_host_memory();
  host_.unpack(members, payload);
}

void DeviceAllreduceOperation::are_back(const Status& outcome) {
  for (const Part& part : parts_) {
    if (part.staged) part.staged->are_back(outcome);
  }
}

}  // namespace elastic::coordinator
