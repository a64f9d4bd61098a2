#include "collectives/device/staged_call.hpp"

#include <algorithm>
#include <utility>

#include "collectives/device/placement.hpp"

namespace elastic::device {

namespace {

// From cuda.h: a waiting thread sleeps, and no time is recorded.
constexpr unsigned kSleepUntilEvent = 1 | 2;

CudaApi::DevicePointer device_pointer(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

std::size_t staged_bytes(const ConstTensorView& tensor) {
  return on_device(tensor) ? tensor.bytes() : 0;
}

}  // namespace

Result<std::unique_ptr<StagedCall>> StagedCall::begin(std::shared_ptr<CudaDevice> device,
                                                      std::string call,
                                                      const ConstTensorView& input,
                                                      const TensorView& output, CudaStream stream,
                                                      Fetch when) {
  const CurrentContext here = device->enter();
  // First: what follows a capture must not do.
  if (Status status = device->check(stream); !status.ok()) return status.within(call);
  std::unique_ptr<StagedCall> staged(
      new StagedCall(std::move(device), std::move(call), input, output, stream, when));
  Status status = staged->make_event();
  if (status.ok() && when == Fetch::kAtOnce) status = staged->make_room();
  if (!status.ok()) return status.within(staged->call_);
  return staged;
}

StagedCall::StagedCall(std::shared_ptr<CudaDevice> device, std::string call,
                       const ConstTensorView& input, const TensorView& output, CudaStream stream,
                       Fetch when)
    : device_(std::move(device)),
      call_(std::move(call)),
      input_(input),
      output_(output),
      stream_(stream),
      when_(when),
      host_input_(input),
      host_output_(output) {
  if (on_device(input_)) host_input_ = {nullptr, input_.count, input_.dtype, {}};
  if (on_device(output_)) host_output_ = {nullptr, output_.count, output_.dtype, {}};
}

Status StagedCall::make_event() {
  return device_->outcome("cuEventCreate",
                          device_->cuda().api().event_create(&event_, kSleepUntilEvent));
}

Status StagedCall::make_room() {
  if (has_room_) return {};
  Result<PinnedPool::Block> block =
      device_->pinned().lend(std::max(staged_bytes(input_), staged_bytes(output_)));
  if (!block.ok()) return block.status();
  block_ = std::move(block).value();
  if (on_device(input_)) host_input_.data = block_.data();
  if (on_device(output_)) host_output_.data = block_.data();
  has_room_ = true;
  return {};
}

StagedCall::~StagedCall() {
  if (event_ == nullptr) return;
  const CurrentContext here = device_->enter();
  const CudaApi& api = device_->cuda().api();
  if (unfinished_) api.stream_synchronize(*unfinished_);
  api.event_destroy(event_);
}

Status StagedCall::wait_behind(void* stream) {
  Status status =
      device_->outcome("cuEventRecord", device_->cuda().api().event_record(event_, stream));
  if (!status.ok()) return status;
  const int error = device_->wait_for(event_, call_);
  unfinished_.reset();
  return device_->outcome("what was queued before the call, or a copy of its tensors", error);
}

Status StagedCall::wait_for_stream() {
  const CurrentContext here = device_->enter();
  return wait_behind(stream_.handle).within(call_);
}

/// On the program's stream: on ours the copy would come after those of calls whose streams are not
/// there yet.
Status StagedCall::read() {
  const CurrentContext here = device_->enter();
  Status status = copy_input(stream_.handle);
  if (status.ok()) status = wait_behind(stream_.handle);
  return status.within(call_);
}

/// Work that was queued before the call is done by now.
Status StagedCall::fetch() {
  if (fetched_) return {};
  const CurrentContext here = device_->enter();
  Status status = make_room();
  if (status.ok()) status = copy_input(device_->to_host());
  if (status.ok()) status = wait_behind(device_->to_host());
  fetched_ = status.ok();
  return status.within(call_);
}

Status StagedCall::copy_input(void* via) {
  if (staged_bytes(input_) == 0) return {};
  unfinished_ = via;
  return device_->outcome("cuMemcpyDtoHAsync",
                          device_->cuda().api().copy_to_host(
                              block_.data(), device_pointer(input_.data), input_.bytes(), via));
}

Status StagedCall::write(std::size_t bytes) {
  if (!on_device(output_) || bytes == 0) return {};
  const CurrentContext here = device_->enter();
  unfinished_ = device_->to_device();
  Status status = device_->outcome(
      "cuMemcpyHtoDAsync", device_->cuda().api().copy_to_device(
                               device_pointer(output_.data), block_.data(), bytes, *unfinished_));
  if (status.ok()) status = wait_behind(*unfinished_);
  return status.within(call_);
}

}  // namespace elastic::device
