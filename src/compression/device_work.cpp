#include "compression/device_work.hpp"

#include <utility>

namespace elastic::codecs {

namespace {

// From cuda.h: a waiting thread sleeps, and no time is recorded.
constexpr unsigned kSleepUntilEvent = 1 | 2;

}  // namespace

DeviceWork::DeviceWork(std::shared_ptr<device::CudaDevice> device, void* stream, std::string call)
    : device_(std::move(device)), stream_(stream), call_(std::move(call)) {}

DeviceWork::~DeviceWork() {
  const device::CurrentContext here = device_->enter();
  const device::CudaApi& api = device_->cuda().api();
  api.stream_synchronize(stream_);
  if (event_ != nullptr) api.event_destroy(event_);
}

Status DeviceWork::wait() {
  const device::CudaApi& api = device_->cuda().api();
  Status status;
  if (event_ == nullptr) {
    status = device_->outcome("cuEventCreate", api.event_create(&event_, kSleepUntilEvent));
  }
  if (status.ok()) status = device_->outcome("cuEventRecord", api.event_record(event_, stream_));
  if (!status.ok()) return status.within(call_);
  return device_
      ->outcome("what was queued before the call, or a kernel of it",
                device_->wait_for(event_, call_))
      .within(call_);
}

}  // namespace elastic::codecs
