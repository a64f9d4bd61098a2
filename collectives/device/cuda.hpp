#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.hpp"

namespace elastic::device {

/// The used part of the CUDA driver, as its own header (cuda.h) declares it, which need not be
/// installed. Contexts, streams and events are pointers of its own; a result of 0 is a success.
struct CudaApi {
  using DevicePointer = std::uint64_t;

  int (*get_error_string)(int error, const char** text) = nullptr;
  int (*device_get)(int* device, int index) = nullptr;
  int (*device_get_name)(char* name, int room, int device) = nullptr;
  int (*device_get_uuid)(void* uuid, int device) = nullptr;  ///< kUuidBytes
  int (*primary_context_retain)(void** context, int device) = nullptr;
  int (*primary_context_release)(int device) = nullptr;
  int (*context_push)(void* context) = nullptr;
  int (*context_pop)(void** context) = nullptr;
  int (*context_set_current)(void* context) = nullptr;
  int (*context_get_device)(int* device) = nullptr;  ///< of the current one
  int (*thread_exchange_capture_mode)(int* mode) = nullptr;
  int (*pointer_get_attributes)(unsigned number, int* which, void** values,
                                DevicePointer address) = nullptr;
  int (*host_alloc)(void** memory, std::size_t bytes, unsigned flags) = nullptr;
  int (*host_free)(void* memory) = nullptr;
  int (*memory_alloc)(DevicePointer* memory, std::size_t bytes) = nullptr;
  int (*memory_free)(DevicePointer memory) = nullptr;
  int (*stream_create)(void** stream, unsigned flags) = nullptr;
  int (*stream_create_with_priority)(void** stream, unsigned flags, int priority) = nullptr;
  /// The range of the current context. Lower numbers are higher priorities.
  int (*context_get_stream_priority_range)(int* lowest, int* highest) = nullptr;
  int (*stream_destroy)(void* stream) = nullptr;
  int (*stream_get_context)(void* stream, void** context) = nullptr;
  int (*stream_is_capturing)(void* stream, int* status) = nullptr;
  int (*stream_wait_event)(void* stream, void* event, unsigned flags) = nullptr;
  int (*stream_synchronize)(void* stream) = nullptr;
  int (*event_create)(void** event, unsigned flags) = nullptr;
  int (*event_destroy)(void* event) = nullptr;
  int (*event_record)(void* event, void* stream) = nullptr;
  int (*event_synchronize)(void* event) = nullptr;
  int (*event_query)(void* event) = nullptr;  ///< kNotReady before it is reached
  int (*copy_to_host)(void* to, DevicePointer from, std::size_t bytes, void* stream) = nullptr;
  int (*copy_to_device)(DevicePointer to, const void* from, std::size_t bytes,
                        void* stream) = nullptr;
  int (*copy_on_device)(DevicePointer to, DevicePointer from, std::size_t bytes,
                        void* stream) = nullptr;

  int (*module_load_data)(void** module, const void* image) = nullptr;
  int (*module_unload)(void* module) = nullptr;
  int (*module_get_function)(void** function, void* module, const char* name) = nullptr;
  int (*launch_kernel)(void* function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                       unsigned threads_x, unsigned threads_y, unsigned threads_z,
                       unsigned shared_bytes, void* stream, void** parameters,
                       void** extra) = nullptr;

  static constexpr int kNotReady = 600;
  static constexpr std::size_t kUuidBytes = 16;
};

/// The CUDA driver of this process. Immutable; any thread.
class Cuda {
 public:
  /// kUnavailable says what is missing. `file` as for CudaDriver::find.
  static Result<std::shared_ptr<const Cuda>> load(const std::string& file = "");

  Cuda(const CudaApi& api, int devices) : api_(api), devices_(devices) {}
  const CudaApi& api() const { return api_; }
  int devices() const { return devices_; }
  /// Nothing where `error` is a success; otherwise kUnavailable, with `call` and what CUDA says.
  Status outcome(const char* call, int error) const;

 private:
  const CudaApi api_;
  const int devices_;
};

/// The function of the driver in `library` that tells where an address lies; null if it has none.
decltype(CudaApi::pointer_get_attributes) find_pointer_get_attributes(void* library);

/// While it lives, calls of this thread are for `context`, and do not spoil what a thread of the
/// program captures into a CUDA graph meanwhile. The state before is restored.
class CurrentContext {
 public:
  CurrentContext(const Cuda& cuda, void* context)
      : cuda_(cuda), pushed_(cuda.api().context_push(context) == 0) {
    cuda_.api().thread_exchange_capture_mode(&capture_mode_);
  }
  ~CurrentContext() {
    cuda_.api().thread_exchange_capture_mode(&capture_mode_);
    void* ours = nullptr;
    if (pushed_) cuda_.api().context_pop(&ours);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Cuda& cuda_;
  const bool pushed_;     // otherwise what is called next says why
  int capture_mode_ = 2;  // "relaxed", of cuda.h; then what it was before
};

}  // namespace elastic::device
