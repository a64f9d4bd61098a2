#include "device/staged_tensors.hpp"

#include <utility>

#include "device/arrivals.hpp"
#include "device/placement.hpp"

namespace elastic::device {

namespace {

// Of cuda.h: who waits sleeps, and nobody asks when it was.
constexpr unsigned kEventFlags = 1 | 2;
/// Of tensors in a block: a cache line, and what copies like.
constexpr std::size_t kAlignment = 256;

constexpr std::size_t aligned(std::size_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

CudaApi::DevicePointer address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace

Result<std::shared_ptr<StagedTensors>> StagedTensors::begin(std::shared_ptr<CudaDevice> device,
                                                            Arrivals& arrivals,
                                                            std::span<const ConstTensorView> inputs,
                                                            std::span<const TensorView> outputs,
                                                            CudaStream stream, Caller caller) {
  {
    // First: what follows a capture must not do.
    const CurrentContext here = device->enter();
    if (Status status = device->check(stream); !status.ok()) return status;
  }
  std::shared_ptr<StagedTensors> tensors(new StagedTensors(std::move(device), arrivals));
  if (Status status = tensors->lay_out(inputs, outputs); !status.ok()) return status;
  if (Status status = tensors->fetch(stream, caller); !status.ok()) return status;
  return tensors;
}

Status StagedTensors::lay_out(std::span<const ConstTensorView> inputs,
                              std::span<const TensorView> outputs) {
  std::size_t bytes = 0;
  for (const ConstTensorView& input : inputs) {
    if (on_device(input)) bytes = aligned(bytes) + input.bytes();
  }
  Result<PinnedPool::Block> block = device_->pinned().lend(bytes);
  if (!block.ok()) return block.status();
  block_ = std::move(block).value();

  std::size_t offset = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TensorView host = outputs[i];
    ConstTensorView from = inputs[i];
    if (on_device(inputs[i])) {
      std::byte* const place = block_.data() + aligned(offset);
      host = {place, inputs[i].count, inputs[i].dtype, {}};
      from = host;
      offset = aligned(offset) + inputs[i].bytes();
      if (inputs[i].bytes() > 0) {
        copies_.push_back(
            {address(inputs[i].data), address(outputs[i].data), place, inputs[i].bytes()});
      }
    }
    host_inputs_.push_back(from);
    host_outputs_.push_back(host);
  }
  call_ = "an allreduce of " + std::to_string(inputs.size()) + " tensors (" +
          std::to_string(bytes) + " bytes on a device)";
  return {};
}

/// Where the caller goes on, its stream does, too: what it computes next does not wait for copies.
Status StagedTensors::fetch(CudaStream stream, Caller caller) {
  const CurrentContext here = device_->enter();
  const CudaApi& api = device_->cuda().api();
  const auto done = [this](const char* call, int error) { return device_->outcome(call, error); };
  void* const via = caller == Caller::kWaits ? stream.handle : device_->to_host();
  unfinished_ = via;
  Status status = done("cuEventCreate", api.event_create(&event_, kEventFlags));
  if (caller == Caller::kGoesOn) {
    if (status.ok()) status = done("cuEventRecord", api.event_record(event_, stream.handle));
    if (status.ok()) status = done("cuStreamWaitEvent", api.stream_wait_event(via, event_, 0));
  }
  for (const Copy& copy : copies_) {
    if (!status.ok()) return status;
    status = done("cuMemcpyDtoHAsync", api.copy_to_host(copy.host, copy.input, copy.bytes, via));
  }
  if (status.ok()) status = done("cuEventRecord", api.event_record(event_, via));
  return status;
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
  const CurrentContext here = device_->enter();
  const CudaApi& api = device_->cuda().api();
  Status status;
  unfinished_ = device_->to_device();
  for (const Copy& copy : copies_) {
    status = device_->outcome("cuMemcpyHtoDAsync",
                              api.copy_to_device(copy.output, copy.host, copy.bytes, *unfinished_));
    if (!status.ok()) return status;
  }
  return device_->outcome("cuEventRecord", api.event_record(event_, *unfinished_));
}

Status StagedTensors::wait_until_back() {
  return wait_for_event();
}

}  // namespace elastic::device
