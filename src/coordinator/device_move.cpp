#include "coordinator/device_move.hpp"

#include <cstdint>
#include <utility>

#include "collectives/device/placement.hpp"

namespace elastic::coordinator {

namespace {

collectives::DeviceTensor tensor_of(const device::StagedTensor& staged) {
  const ConstTensorView& input = staged.given_input;
  return {input.dtype, input.count, reinterpret_cast<std::uintptr_t>(input.data),
          reinterpret_cast<std::uintptr_t>(staged.given_output.data), 0};
}

/// The device of input and output; -1 if they have none in common. An empty input fits any device.
int device_of(const device::StagedTensor& staged) {
  const ConstTensorView& input = staged.given_input;
  const TensorView& output = staged.given_output;
  if (output.bytes() == 0 || !device::on_device(output)) return -1;
  if (input.bytes() > 0 && !device::on_device(input)) return -1;
  return output.device.index;
}

}  // namespace

DeviceMoveOperation::DeviceMoveOperation(Parts parts)
    : parts_(std::move(parts)),
      tensor_(tensor_of(parts_.staged->tensors().front())),
      device_(device_of(parts_.staged->tensors().front())),
      host_(parts_.in_host_memory()) {}

void DeviceMoveOperation::pack(const Members& members, collectives::Payload& payload) {
  members_ = &members;
  payload.form = collectives::OnDevice{this};
}

Status DeviceMoveOperation::to_host(collectives::Payload& payload) {
  if (parts_.reads) {
    if (Status status = parts_.staged->fetch(); !status.ok()) return status;
    host_ = parts_.in_host_memory();
  }
  host_->pack(*members_, payload);
  return {};
}

void DeviceMoveOperation::unpack(const Members& members, const collectives::Payload& payload) {
  if (collectives::DeviceResult* const result = payload.device_result()) {
    parts_.staged->are_back(parts_.accepts(members, payload) ? result->unpack() : Status());
    return;
  }
  if (Status room = parts_.staged->make_room(); !room.ok()) {
    parts_.staged->are_back(room);
    return;
  }
  host_ = parts_.in_host_memory();
  host_->unpack(members, payload);
}

}  // namespace elastic::coordinator
