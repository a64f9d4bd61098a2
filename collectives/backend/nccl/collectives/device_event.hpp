#pragma once

#include "collectives/device/cuda.hpp"

namespace elastic::collectives::nccl {

/// A point in a stream's work. Made and destroyed in the context of its device.
class DeviceEvent {
 public:
  explicit DeviceEvent(const device::CudaApi& api)
      : api_(api), made_(api.event_create(&handle_, kDisableTiming)) {}
  ~DeviceEvent() {
    if (made_ == 0) api_.event_destroy(handle_);
  }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  /// The point is behind all that was queued so far. An error of CUDA's, or 0.
  int record(void* stream) { return made_ != 0 ? made_ : api_.event_record(handle_, stream); }
  /// 0 if the stream has reached it, CudaApi::kNotReady if not, or an error of CUDA's.
  int query() const { return api_.event_query(handle_); }
  void* handle() const { return handle_; }

 private:
  static constexpr unsigned kDisableTiming = 2;  // CU_EVENT_DISABLE_TIMING of cuda.h

  const device::CudaApi& api_;
  void* handle_ = nullptr;
  const int made_;
};

}  // namespace elastic::collectives::nccl
