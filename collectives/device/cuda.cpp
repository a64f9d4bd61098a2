#include "collectives/device/cuda.hpp"

#include <dlfcn.h>

#include "base/cuda_driver.hpp"

namespace elastic::device {

namespace {

/// Looks up functions, and remembers the first that was not there.
class Lookup {
 public:
  explicit Lookup(void* library) : library_(library) {}

  template <typename Function>
  void operator()(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  const char* missing() const { return missing_; }

 private:
  void* const library_;
  const char* missing_ = nullptr;
};

constexpr const char* kPointerGetAttributes = "cuPointerGetAttributes";

/// By the names that CUDA's header gives them, all of them since CUDA 11.4 or earlier. For these a
/// stream that is null is the legacy default stream.
const char* look_up(void* library, CudaApi& api) {
  Lookup find(library);
  find(api.get_error_string, "cuGetErrorString");
  find(api.device_get, "cuDeviceGet");
  find(api.device_get_name, "cuDeviceGetName");
  find(api.device_get_uuid, "cuDeviceGetUuid_v2");
  find(api.primary_context_retain, "cuDevicePrimaryCtxRetain");
  find(api.primary_context_release, "cuDevicePrimaryCtxRelease_v2");
  find(api.context_push, "cuCtxPushCurrent_v2");
  find(api.context_pop, "cuCtxPopCurrent_v2");
  find(api.context_set_current, "cuCtxSetCurrent");
  find(api.context_get_device, "cuCtxGetDevice");
  find(api.thread_exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  find(api.pointer_get_attributes, kPointerGetAttributes);
  find(api.host_alloc, "cuMemHostAlloc");
  find(api.host_free, "cuMemFreeHost");
  find(api.memory_alloc, "cuMemAlloc_v2");
  find(api.memory_free, "cuMemFree_v2");
  find(api.stream_create, "cuStreamCreate");
  find(api.stream_create_with_priority, "cuStreamCreateWithPriority");
  find(api.context_get_stream_priority_range, "cuCtxGetStreamPriorityRange");
  find(api.stream_destroy, "cuStreamDestroy_v2");
  find(api.stream_get_context, "cuStreamGetCtx");
  find(api.stream_is_capturing, "cuStreamIsCapturing");
  find(api.stream_wait_event, "cuStreamWaitEvent");
  find(api.stream_synchronize, "cuStreamSynchronize");
  find(api.event_create, "cuEventCreate");
  find(api.event_destroy, "cuEventDestroy_v2");
  find(api.event_record, "cuEventRecord");
  find(api.event_synchronize, "cuEventSynchronize");
  find(api.event_query, "cuEventQuery");
  find(api.copy_to_host, "cuMemcpyDtoHAsync_v2");
  find(api.copy_to_device, "cuMemcpyHtoDAsync_v2");
  find(api.copy_on_device, "cuMemcpyDtoDAsync_v2");
  find(api.module_load_data, "cuModuleLoadData");
  find(api.module_unload, "cuModuleUnload");
  find(api.module_get_function, "cuModuleGetFunction");
  find(api.launch_kernel, "cuLaunchKernel");
  return find.missing();
}

}  // namespace

Result<std::shared_ptr<const Cuda>> Cuda::load(const std::string& file) {
  const CudaDriver driver = CudaDriver::find(file);
  if (!driver.usable()) return Status(Code::kUnavailable, driver.missing);
  CudaApi api;
  if (const char* const missing = look_up(driver.library, api); missing != nullptr) {
    return Status(Code::kUnavailable, "the CUDA driver (for CUDA " + driver.version +
                                          ") is too old: it has no " + missing);
  }
  return std::make_shared<const Cuda>(api, driver.devices);
}

Status Cuda::outcome(const char* call, int error) const {
  if (error == 0) return {};
  const char* text = nullptr;
  api_.get_error_string(error, &text);
  return Status(Code::kUnavailable, std::string(call) + ": " +
                                        (text == nullptr ? "" : text + std::string(" ")) +
                                        "(error " + std::to_string(error) + " of CUDA)");
}

decltype(CudaApi::pointer_get_attributes) find_pointer_get_attributes(void* library) {
  return reinterpret_cast<decltype(CudaApi::pointer_get_attributes)>(
      ::dlsym(library, kPointerGetAttributes));
}

}  // namespace elastic::device
