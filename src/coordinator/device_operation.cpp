#include "coordinator/device_operation.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "collectives/device/placement.hpp"

namespace elastic::coordinator {

namespace {

std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// The tensors of all parts: `which` of staged tensors, others as they were given in host memory.
template <typename View>
std::vector<View> collect(const std::vector<DeviceOperation::Part>& parts,
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

DeviceOperation::DeviceOperation(std::vector<Part> parts, MakeOperation in_host_memory, bool reads,
                                 Accepts accepts)
    : parts_(std::move(parts)),
      in_host_memory_(std::move(in_host_memory)),
      reads_(reads),
      accepts_(std::move(accepts)),
      given_(given_in(parts_)),
      device_(device_of(given_)),
      host_(in_host_memory_(parts_)) {}

std::vector<DeviceOperation::Given> DeviceOperation::given_in(const std::vector<Part>& parts) {
  std::vector<Given> given;
  for (const Part& part : parts) {
    if (part.staged) {
      for (const device::StagedTensor& tensor : part.staged->tensors()) {
        given.push_back({tensor.given_input, tensor.given_output});
      }
    } else {
      for (const TensorView& tensor : part.tensors) given.push_back({tensor, tensor});
    }
  }
  return given;
}

/// The device of all inputs and outputs; -1 if they have none in common. Tensors without elements
/// fit any device, but an input needs an output to go to.
int DeviceOperation::device_of(const std::vector<Given>& given) {
  int common = -1;
  for (const auto& [input, output] : given) {
    if (input.bytes() == 0 && output.bytes() == 0) continue;
    if (output.bytes() == 0 || !device::on_device(output)) return -1;
    if (input.bytes() > 0 && !device::on_device(input)) return -1;
    if (common >= 0 && output.device.index != common) return -1;
    common = output.device.index;
  }
  return common;
}

void DeviceOperation::choose_ways(const plan::AllreduceLimits& limits) {
  limits_ = limits;
  host_->choose_ways(limits);
  if (device_ >= 0) list_tensors();
}

void DeviceOperation::list_tensors() {
  on_device_.clear();
  for (const ResultPlace& place : host_->places()) {
    const auto& [input, output] = given_[place.tensor];
    if (output.bytes() == 0) continue;
    collectives::DeviceTensor tensor{input.dtype, input.count, address(input.data),
                                     address(output.data), place.offset};
    if (place.wire) tensor.wire = *place.wire;
    tensor.room = output.bytes();
    on_device_.push_back(tensor);
  }
}

void DeviceOperation::pack(const Members& members, collectives::Payload& payload) {
  members_ = &members;
  payload.form = collectives::OnDevice{this};
}

std::size_t DeviceOperation::bytes() const {
  std::size_t bytes = 0;
  for (const Given& each : given_) bytes += each.input.bytes();
  return bytes;
}

Status DeviceOperation::to_host(collectives::Payload& payload) {
  if (reads_) {
    for (const Part& part : parts_) {
      if (!part.staged) continue;
      if (Status status = part.staged->fetch(); !status.ok()) return status;
    }
    renew_host();
  }
  host_->pack(*members_, payload);
  return {};
}

void DeviceOperation::unpack(const Members& members, const collectives::Payload& payload) {
  if (auto result = payload.device_result()) {
    bring_back(accepts_ && !accepts_(members, payload) ? nullptr : std::move(result));
    return;
  }
  if (const Status status = make_room(); !status.ok()) {
    are_back(status);
    return;
  }
  renew_host();
  host_->unpack(members, payload);
}

Status DeviceOperation::make_room() {
  for (const Part& part : parts_) {
    if (!part.staged) continue;
    if (Status status = part.staged->make_room(); !status.ok()) return status;
  }
  return {};
}

/// Gives the operation on host memory the present addresses of the tensors.
void DeviceOperation::renew_host() {
  host_ = in_host_memory_(parts_);
  host_->choose_ways(limits_);
}

void DeviceOperation::are_back(const Status& outcome) {
  for (const Part& part : parts_) {
    if (part.staged) part.staged->are_back(outcome);
  }
}

/// One event, behind the tensors of the last part, stands for those of all. Null: the outputs have
/// no room for the result.
void DeviceOperation::bring_back(std::shared_ptr<collectives::DeviceResult> result) {
  const Result<void*> via =
      result ? result->begin_unpack() : Result<void*>(static_cast<void*>(nullptr));
  are_back(via.status());
  if (!via.ok() || via.value() == nullptr) return;
  const auto last = std::find_if(parts_.rbegin(), parts_.rend(),
                                 [](const Part& part) { return part.staged != nullptr; });
  last->staged->are_coming(via.value(), std::move(result));
}

std::unique_ptr<Operation> device_allreduce(std::vector<DeviceOperation::Part> parts, ReduceOp op,
                                            std::vector<collectives::Wire> wires) {
  return std::make_unique<DeviceOperation>(
      std::move(parts),
      [op, wires = std::move(wires)](const std::vector<DeviceOperation::Part>& all) {
        return std::make_unique<AllreduceOperation>(collect(all, &device::StagedTensor::input),
                                                    collect(all, &device::StagedTensor::output), op,
                                                    wires);
      });
}

}  // namespace elastic::coordinator
