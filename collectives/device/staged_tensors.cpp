#include "collectives/device/staged_tensors.hpp"

#include <utility>

#include "collectives/device/arrivals.hpp"
#include "collectives/device/placement.hpp"

namespace elastic::device {

namespace {

// From cuda.h: a waiting thread sleeps, and no time is recorded.
constexpr unsigned kEventFlags = 1 | 2;
/// For tensors in a block: a cache line, and good for copies.
constexpr std::size_t kAlignment = 256;

constexpr std::size_t aligned(std::size_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

CudaApi::DevicePointer address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace

Result<std::shared_ptr<StagedTensors>> StagedTensors::begin(
    std::shared_ptr<CudaDevice> device, Arrivals& arrivals, std::span<const ConstTensorView> inputs,
    std::span<const TensorView> outputs, CudaStream stream, Caller caller, Fetch when) {
  {
    // First: what follows a capture must not do.
    const CurrentContext here = device->enter();
    if (Status status = device->check(stream); !status.ok()) return status;
  }
  std::shared_ptr<StagedTensors> tensors(new StagedTensors(std::move(device), arrivals, when));
  tensors->lay_out(inputs, outputs);
  Status status;
  if (when == Fetch::kOnDemand) {
    status = tensors->follow(stream);
  } else {
    status = tensors->make_room();
    if (status.ok()) status = tensors->fetch(stream, caller);
  }
  if (!status.ok()) return status;
  return tensors;
}

void StagedTensors::lay_out(std::span<const ConstTensorView> inputs,
                            std::span<const TensorView> outputs) {
  given_inputs_.assign(inputs.begin(), inputs.end());
  given_outputs_.assign(outputs.begin(), outputs.end());
  host_inputs_ = given_inputs_;
  host_outputs_ = given_outputs_;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!on_device(inputs[i])) continue;
    host_inputs_[i] = {nullptr, inputs[i].count, inputs[i].dtype, {}};
    host_outputs_[i] = {nullptr, inputs[i].count, inputs[i].dtype, {}};
    if (inputs[i].bytes() == 0) continue;
    const std::size_t offset = aligned(block_bytes_);
    copies_.push_back(
        {address(inputs[i].data), address(outputs[i].data), nullptr, inputs[i].bytes(), i, offset});
    block_bytes_ = offset + inputs[i].bytes();
  }
  call_ = "an allreduce of " + std::to_string(inputs.size()) + " tensors (" +
          std::to_string(block_bytes_) + " bytes on a device)";
}

Status StagedTensors::make_room() {
  if (has_room_) return {};
  Result<PinnedPool::Block> block = device_->pinned().lend(block_bytes_);
  if (!block.ok()) return block.status();
  block_ = std::move(block).value();
  for (Copy& copy : copies_) {
    copy.host = block_.data() + copy.offset;
    host_inputs_[copy.tensor].data = copy.host;
    host_outputs_[copy.tensor].data = copy.host;
  }
  has_room_ = true;
  return {};
}

/// Has our event come true when the stream has done what is queued on it.
Status StagedTensors::follow(CudaStream stream) {
  const CurrentContext here = device_->enter();
  Status status =
      device_->outcome("cuEventCreate", device_->cuda().api().event_create(&event_, kEventFlags));
  return status.ok() ? record(stream.handle) : status;
}

Status StagedTensors::record(void* stream) {
  return device_->outcome("cuEventRecord", device_->cuda().api().event_record(event_, stream));
}

/// Where the caller goes on, its stream does, too: what it computes next does not wait for copies.
Status StagedTensors::fetch(CudaStream stream, Caller caller) {
  const CurrentContext here = device_->enter();
  void* const via = caller == Caller::kWaits ? stream.handle : device_->to_host();
  unfinished_ = via;
  Status status = follow(stream);
  if (status.ok() && caller == Caller::kGoesOn) {
    status = device_->outcome("cuStreamWaitEvent",
                              device_->cuda().api().stream_wait_event(via, event_, 0));
  }
  return status.ok() ? queue_copies(via) : status;
}

/// Behind which the event is.
Status StagedTensors::queue_copies(void* via) {
  const CudaApi& api = device_->cuda().api();
  for (const Copy& copy : copies_) {
    Status status = device_->outcome("cuMemcpyDtoHAsync",
                                     api.copy_to_host(copy.host, copy.input, copy.bytes, via));
    if (!status.ok()) return status;
  }
  fetched_ = true;
  return record(via);
}

/// Work that was queued before the call is done by now.
Status StagedTensors::fetch() {
  if (fetched_) return {};
  if (Status status = make_room(); !status.ok()) return status;
  {
    const CurrentContext here = device_->enter();
    unfinished_ = device_->to_host();
    if (Status status = queue_copies(*unfinished_); !status.ok()) return status;
  }
  return wait_for_event();
}

StagedTensors::~StagedTensors() {
  const CurrentContext here = device_->enter();
  const CudaApi& api = device_->cuda().api();
  if (event_ == nullptr) return;
  if (unfinished_) api.stream_synchronize(*unfinished_);
  api.event_destroy(event_);
}

Status StagedTensors::wait_for_arrival() {
  Status status = wait_for_event();
  const std::lock_guard<std::mutex> lock(mutex_);
  arrival_ = status;
  return status;
}

Status StagedTensors::wait_for_event() {
  const CurrentContext here = device_->enter();
  const int error = device_->wait_for(event_, call_);
  unfinished_.reset();
  return device_->outcome("what was queued before an allreduce, or a copy of its tensors", error);
}

std::optional<Status> StagedTensors::arrival() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return arrival_;
}

void StagedTensors::when_arrived(std::function<void()> then) {
  arrivals_.add(shared_from_this(), std::move(then));
}

Status StagedTensors::send_back() {
  if (back_) return *back_;
  const CurrentContext here = device_->enter();
  const CudaApi& api = device_->cuda().api();
  Status status;
  unfinished_ = device_->to_device();
  for (const Copy& copy : copies_) {
    status = device_->outcome("cuMemcpyHtoDAsync",
                              api.copy_to_device(copy.output, copy.host, copy.bytes, *unfinished_));
    if (!status.ok()) return status;
  }
  return record(*unfinished_);
}

Status StagedTensors::wait_until_back() {
  if (back_) return {};
  return wait_for_event();
}

}  // namespace elastic::device
