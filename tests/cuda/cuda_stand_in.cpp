// A stand-in for the CUDA driver with CUDA_STAND_IN_DEVICES devices (2), or, if
// CUDA_STAND_IN_ERROR is set, one that fails to start with this error. Device memory is host memory
// that only the stand-in can access, and streams are threads. CUDA_STAND_IN_FAIL, for example
// "cuMemcpyHtoDAsync_v2:3", makes that function fail from its third call on. With
// CUDA_STAND_IN_KERNELS=1 any image has the kernels that encode gradients, which the processor
// performs; otherwise none can be loaded.
//
// It is stricter than CUDA: calls fail without a current context, or with one that does not fit.
// It differs from CUDA in one point: streams do not wait for the default stream.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "cuda/stand_in_kernels.hpp"
#include "cuda/stand_in_memory.hpp"
#include "cuda/stand_in_stream.hpp"

#define EXPORT extern "C" [[gnu::visibility("default")]]

namespace {

using elastic::cuda_stand_in::Context;
using elastic::cuda_stand_in::Event;
using elastic::cuda_stand_in::Memory;
using elastic::cuda_stand_in::Stream;
using Pointer = unsigned long long;
/// The target of an event handle, shared because programs may destroy events that are pending.
using SharedEvent = std::shared_ptr<Event>;

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidContext = 201;
constexpr int kNoBinaryForGpu = 209;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;
constexpr int kNotReady = 600;
constexpr int kIllegalAddress = 700;
constexpr int kUnsafeInCapture = 900;
constexpr int kMostDevices = 8;

int number(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

int devices() {
  return number("CUDA_STAND_IN_DEVICES", 2);
}

/// A device's primary context, with its default stream.
struct Primary {
  Context context;
  std::unique_ptr<Stream> default_stream;
};

/// Never destroyed: other threads of the process may still be at work when it ends.
struct Driver {
  Memory memory;
  Primary primaries[kMostDevices];
  std::mutex mutex;
};

Driver& driver() {
  static auto* const the = new Driver;
  return *the;
}

std::atomic<long> host_waits{0};
std::atomic<long> copies_on_device{0};

/// The contexts of a thread, of which the last one is current. Nothing destroys them: calls still
/// come when the process ends, after the main thread's other objects are gone.
class ContextStack {
 public:
  bool empty() const { return size_ == 0; }
  Context*& back() { return contexts_[size_ - 1]; }
  void pop_back() { --size_; }
  bool push_back(Context* context) {
    if (size_ == kMost) return false;
    contexts_[size_++] = context;
    return true;
  }

 private:
  static constexpr std::size_t kMost = 64;
  Context* contexts_[kMost];
  std::size_t size_;
};
static_assert(std::is_trivially_destructible_v<ContextStack>);

/// Not in memory that the linker gets for threads one by one: ThreadSanitizer takes its reuse for a
/// race.
[[gnu::tls_model("initial-exec")]] thread_local ContextStack current{};
[[gnu::tls_model("initial-exec")]] thread_local int capture_mode = 0;
/// Bytes of all devices, as this thread has them.
[[gnu::tls_model("initial-exec")]] thread_local std::size_t device_memory = SIZE_MAX;
std::atomic<int> captures{0};  // under way

/// Calls that threads may only make in the mode "relaxed" while anything is captured.
bool spoils_captures() {
  return captures > 0 && capture_mode != 2;
}

Context* current_context() {
  return current.empty() ? nullptr : current.back();
}

/// The stream that a handle means here; null if it is of no use.
Stream* stream_of(void* handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value > 2) return static_cast<Stream*>(handle);
  if (current_context() == nullptr) return nullptr;
  return driver().primaries[current_context()->device].default_stream.get();
}

/// Whether this call is one of those that are to fail.
bool fails(const char* function) {
  static std::atomic<int> calls{0};
  const char* const plan = std::getenv("CUDA_STAND_IN_FAIL");
  if (plan == nullptr) return false;
  const std::string text = plan;
  const auto colon = text.find(':');
  if (text.substr(0, colon) != function) return false;
  return ++calls >= std::atoi(text.c_str() + colon + 1);
}

int copy(void* to, const void* from, std::size_t bytes, void* handle) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidContext;
  if (to == nullptr || from == nullptr) return kInvalidValue;
  stream->queue([=] { std::memcpy(to, from, bytes); });
  return kSuccess;
}

}  // namespace

EXPORT int cuInit(unsigned) {
  return number("CUDA_STAND_IN_ERROR", 0);
}
EXPORT int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
EXPORT int cuDeviceGetCount(int* count) {
  *count = devices();
  return kSuccess;
}
EXPORT int cuGetErrorString(int error, const char** text) {
  *text = error == kIllegalAddress   ? "an illegal memory access was encountered"
          : error == kOutOfMemory    ? "out of memory"
          : error == kNoBinaryForGpu ? "no kernel image is available for execution on the device"
                                     : "forward compatibility was attempted";
  return kSuccess;
}
EXPORT int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= devices() || ordinal >= kMostDevices) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

EXPORT int cuDeviceGetName(char* name, int room, int) {
  const char* const told = std::getenv("CUDA_STAND_IN_NAME");
  std::snprintf(name, static_cast<std::size_t>(room), "%s", told != nullptr ? told : "a stand-in");
  return kSuccess;
}
EXPORT int cuDeviceGetUuid_v2(void* uuid, int device) {
  std::memset(uuid, 0, 16);
  static_cast<unsigned char*>(uuid)[15] = static_cast<unsigned char>(device);
  return kSuccess;
}

EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  Primary& primary = driver().primaries[device];
  const std::lock_guard<std::mutex> lock(driver().mutex);
  if (!primary.default_stream) {
    primary.context.device = device;
    primary.default_stream = std::make_unique<Stream>(&primary.context);
  }
  *context = &primary.context;
  return kSuccess;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int) {
  return kSuccess;
}
EXPORT int cuCtxPushCurrent_v2(void* context) {
  if (!current.push_back(static_cast<Context*>(context))) return kOutOfMemory;
  return kSuccess;
}
EXPORT int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return kSuccess;
}

EXPORT int cuCtxGetDevice(int* device) {
  if (current.empty() || current.back() == nullptr) return kInvalidContext;
  *device = current.back()->device;
  return kSuccess;
}

EXPORT int cuCtxSetCurrent(void* context) {
  if (current.empty()) current.push_back(nullptr);
  current.back() = static_cast<Context*>(context);
  return kSuccess;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return kSuccess;
}

EXPORT int cuMemAlloc_v2(Pointer* memory, std::size_t bytes) {
  if (current_context() == nullptr) return kInvalidContext;
  if (fails("cuMemAlloc_v2")) return kOutOfMemory;
  const std::size_t used = device_memory == SIZE_MAX ? 0 : driver().memory.device_bytes();
  if (used > device_memory || bytes > device_memory - used) return kOutOfMemory;
  std::byte* const found =
      driver().memory.allocate(Memory::Kind::kDevice, current_context()->device, bytes);
  *memory = reinterpret_cast<std::uintptr_t>(found);
  return found == nullptr ? kOutOfMemory : kSuccess;
}
EXPORT int cuMemAllocManaged(Pointer* memory, std::size_t bytes, unsigned) {
  if (current_context() == nullptr) return kInvalidContext;
  std::byte* const found =
      driver().memory.allocate(Memory::Kind::kManaged, current_context()->device, bytes);
  *memory = reinterpret_cast<std::uintptr_t>(found);
  return found == nullptr ? kOutOfMemory : kSuccess;
}
EXPORT int cuMemFree_v2(Pointer memory) {
  return driver().memory.free(reinterpret_cast<void*>(memory)) ? kSuccess : kInvalidValue;
}
EXPORT int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (current_context() == nullptr) return kInvalidContext;
  if (spoils_captures()) return kUnsafeInCapture;
  if (fails("cuMemHostAlloc")) return kOutOfMemory;
  *memory = driver().memory.allocate(Memory::Kind::kHost, 0, bytes);
  return *memory == nullptr ? kOutOfMemory : kSuccess;
}
EXPORT int cuMemFreeHost(void* memory) {
  return driver().memory.free(memory) ? kSuccess : kInvalidValue;
}

EXPORT int cuPointerGetAttributes(unsigned count, const int* which, void** values,
                                  Pointer address) {
  if (current_context() == nullptr) return kInvalidContext;
  Memory::Block block;
  std::size_t offset = 0;
  const bool known = driver().memory.find(reinterpret_cast<void*>(address), block, offset);
  for (unsigned i = 0; i < count; ++i) {
    auto* const value = static_cast<int*>(values[i]);
    *value = 0;
    if (!known) continue;
    if (which[i] == 2) *value = block.kind == Memory::Kind::kHost ? 1 : 2;
    if (which[i] == 8) *value = block.kind == Memory::Kind::kManaged ? 1 : 0;
    if (which[i] == 9) *value = block.device;
  }
  return kSuccess;
}

EXPORT int cuStreamCreate(void** stream, unsigned) {
  if (current_context() == nullptr) return kInvalidContext;
  *stream = new Stream(current_context());
  return kSuccess;
}
EXPORT int cuCtxGetStreamPriorityRange(int* lowest, int* highest) {
  if (current_context() == nullptr) return kInvalidContext;
  *lowest = 0;
  *highest = -5;
  return kSuccess;
}
EXPORT int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  if (const int error = cuStreamCreate(stream, flags); error != kSuccess) return error;
  stream_of(*stream)->priority = priority;
  return kSuccess;
}
EXPORT int cuStreamGetPriority(void* stream, int* priority) {
  *priority = stream_of(stream)->priority;
  return kSuccess;
}
EXPORT int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  return kSuccess;
}
EXPORT int cuStreamGetCtx(void* stream, void** context) {
  if (stream_of(stream) == nullptr) return kInvalidContext;
  *context = stream_of(stream)->context();
  return kSuccess;
}
EXPORT int cuStreamIsCapturing(void* stream, int* status) {
  if (stream_of(stream) == nullptr) return kInvalidContext;
  *status = stream_of(stream)->capturing ? 1 : 0;
  return kSuccess;
}
EXPORT int cuStreamBeginCapture_v2(void* stream, int) {
  stream_of(stream)->capturing = true;
  ++captures;
  return kSuccess;
}
EXPORT int cuStreamEndCapture(void* stream, void** graph) {
  stream_of(stream)->capturing = false;
  --captures;
  *graph = nullptr;
  return kSuccess;
}
EXPORT int cuStreamSynchronize(void* stream) {
  if (stream_of(stream) == nullptr) return kInvalidContext;
  ++host_waits;
  stream_of(stream)->synchronize();
  return kSuccess;
}
EXPORT int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  if (stream_of(stream) == nullptr) return kInvalidContext;
  const SharedEvent awaited = *static_cast<SharedEvent*>(event);
  const std::uint64_t recording = awaited->latest();
  stream_of(stream)->queue([=] { awaited->wait(recording); });
  return kSuccess;
}
EXPORT int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  if (stream_of(stream) == nullptr) return kInvalidContext;
  stream_of(stream)->queue([=] { function(data); });
  return kSuccess;
}

EXPORT int cuEventCreate(void** event, unsigned) {
  if (current_context() == nullptr) return kInvalidContext;
  *event = new SharedEvent(std::make_shared<Event>());
  return kSuccess;
}
EXPORT int cuEventDestroy_v2(void* event) {
  delete static_cast<SharedEvent*>(event);
  return kSuccess;
}
EXPORT int cuEventRecord(void* event, void* stream) {
  Stream* const on = stream_of(stream);
  if (on == nullptr) return kInvalidContext;
  if (on->context() != current_context()) return kInvalidHandle;
  const SharedEvent recorded = *static_cast<SharedEvent*>(event);
  const std::uint64_t recording = recorded->record();
  on->queue([=] { recorded->reached(recording); });
  return kSuccess;
}
EXPORT int cuEventSynchronize(void* event) {
  if (spoils_captures()) return kUnsafeInCapture;
  ++host_waits;
  const SharedEvent awaited = *static_cast<SharedEvent*>(event);
  awaited->wait(awaited->latest());
  return fails("cuEventSynchronize") ? kIllegalAddress : kSuccess;
}

EXPORT int cuEventQuery(void* event) {
  const SharedEvent asked = *static_cast<SharedEvent*>(event);
  return asked->is_reached(asked->latest()) ? kSuccess : kNotReady;
}

/// For tests: how often the host has waited for a stream or an event.
EXPORT long cuda_stand_in_waits() {
  return host_waits;
}

/// For tests: how many copies from device to device there were.
EXPORT long cuda_stand_in_copies_on_device() {
  return copies_on_device;
}

/// For tests: so many bytes are left on all devices now, for the calls of this thread.
EXPORT void cuda_stand_in_leave(std::size_t bytes) {
  device_memory = driver().memory.device_bytes() + bytes;
}

/// For stand-ins of libraries that work on devices: the host address of so many bytes of a device;
/// null if they are not all in one block.
EXPORT void* cuda_stand_in_inside(Pointer address, std::size_t bytes) {
  return driver().memory.inside(address, bytes);
}

EXPORT int cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, std::size_t bytes, void* stream) {
  if (fails("cuMemcpyDtoDAsync_v2")) return kIllegalAddress;
  ++copies_on_device;
  return copy(driver().memory.inside(to, bytes), driver().memory.inside(from, bytes), bytes,
              stream);
}
/// Copies between any two kinds of memory.
EXPORT int cuMemcpyAsync(Pointer to, Pointer from, std::size_t bytes, void* stream) {
  const auto find = [bytes](Pointer address) {
    std::byte* const on_device = driver().memory.inside(address, bytes);
    return on_device != nullptr ? on_device : reinterpret_cast<std::byte*>(address);
  };
  return copy(find(to), find(from), bytes, stream);
}
EXPORT int cuMemcpyDtoHAsync_v2(void* to, Pointer from, std::size_t bytes, void* stream) {
  if (fails("cuMemcpyDtoHAsync_v2")) return kIllegalAddress;
  return copy(to, driver().memory.inside(from, bytes), bytes, stream);
}
EXPORT int cuMemcpyHtoDAsync_v2(Pointer to, const void* from, std::size_t bytes, void* stream) {
  if (fails("cuMemcpyHtoDAsync_v2")) return kIllegalAddress;
  return copy(driver().memory.inside(to, bytes), from, bytes, stream);
}

EXPORT int cuModuleLoadData(void** module, const void* image) {
  if (current_context() == nullptr) return kInvalidContext;
  if (image == nullptr) return kInvalidValue;
  if (number("CUDA_STAND_IN_KERNELS", 0) == 0) return kNoBinaryForGpu;
  *module = current_context();
  return kSuccess;
}
EXPORT int cuModuleUnload(void*) {
  return kSuccess;
}
EXPORT int cuModuleGetFunction(void** function, void*, const char* name) {
  *function = elastic::cuda_stand_in::find_kernel(name);
  return *function == nullptr ? kNotFound : kSuccess;
}
EXPORT int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads,
                          unsigned, unsigned, unsigned, void* stream, void** parameters, void**) {
  if (fails("cuLaunchKernel")) return kIllegalAddress;
  if (stream_of(stream) == nullptr) return kInvalidContext;
  if (blocks == 0 || threads == 0 || threads > 1024) return kInvalidValue;
  const auto work = elastic::cuda_stand_in::work_of(function, parameters[0],
                                                    [](std::uintptr_t address, std::size_t bytes) {
                                                      return driver().memory.inside(address, bytes);
                                                    });
  if (!work) return kIllegalAddress;
  stream_of(stream)->queue(work);
  return kSuccess;
}
