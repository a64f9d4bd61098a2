#include "collectives/device/cuda_device.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace elastic::device {

namespace {

// From cuda.h.
constexpr unsigned kNonBlockingStream = 1;
constexpr unsigned kPortableMemory = 1;
constexpr std::uintptr_t kLegacyStream = 1;
constexpr std::uintptr_t kStreamPerThread = 2;

/// Whether `error` is a failure of the device, as in an earlier kernel, and not of an argument.
bool is_of_device(int error) {
  constexpr int kUncorrectableMemory = 214;
  constexpr int kFirst = 700;  // from an illegal address on
  constexpr int kEnd = 900;    // where errors of captures begin
  return error == kUncorrectableMemory || (error >= kFirst && error < kEnd);
}

std::string name_of(int index) {
  return "CUDA device " + std::to_string(index);
}

}  // namespace

Result<std::shared_ptr<CudaDevice>> CudaDevice::open(std::shared_ptr<const Cuda> cuda, int index,
                                                     std::shared_ptr<StallWatch> watch) {
  if (index < 0 || index >= cuda->devices()) {
    return Status(Code::kInvalidArgument,
                  "a tensor was given as one on " + name_of(index) + ", and this process has " +
                      std::to_string(cuda->devices()) +
                      " (numbered from 0; CUDA_VISIBLE_DEVICES hides some)");
  }
  int handle = 0;
  if (Status status = cuda->outcome("cuDeviceGet", cuda->api().device_get(&handle, index));
      !status.ok()) {
    return status.within(name_of(index));
  }
  void* context = nullptr;
  if (Status status = cuda->outcome("cuDevicePrimaryCtxRetain",
                                    cuda->api().primary_context_retain(&context, handle));
      !status.ok()) {
    return status.within(name_of(index));
  }
  std::shared_ptr<CudaDevice> device(
      new CudaDevice(std::move(cuda), index, handle, context, std::move(watch)));
  if (Status status = device->make_streams(); !status.ok()) return status;
  return device;
}

CudaDevice::CudaDevice(std::shared_ptr<const Cuda> cuda, int index, int handle, void* context,
                       std::shared_ptr<StallWatch> watch)
    : cuda_(std::move(cuda)),
      index_(index),
      handle_(handle),
      context_(context),
      watch_(std::move(watch)),
      pinned_([this](std::size_t bytes) { return get_pinned(bytes); },
              [this](std::byte* memory) { give_back_pinned(memory); }) {}

CudaDevice::~CudaDevice() {
  pinned_.clear();
  {
    const CurrentContext here = enter();
    if (to_host_ != nullptr) cuda_->api().stream_destroy(to_host_);
    if (to_device_ != nullptr) cuda_->api().stream_destroy(to_device_);
  }
  cuda_->api().primary_context_release(handle_);
}

Status CudaDevice::make_streams() {
  const CurrentContext here = enter();
  for (void** const stream : {&to_host_, &to_device_}) {
    Status status =
        outcome("cuStreamCreate", cuda_->api().stream_create(stream, kNonBlockingStream));
    if (!status.ok()) return status;
  }
  return {};
}

std::string CudaDevice::id() const {
  constexpr std::array<std::size_t, 4> kDashes{4, 6, 8, 10};
  std::array<unsigned char, CudaApi::kUuidBytes> uuid{};
  if (cuda_->api().device_get_uuid(uuid.data(), handle_) != 0) return {};
  std::string text = "GPU-";
  for (std::size_t at = 0; at < uuid.size(); ++at) {
    if (std::find(kDashes.begin(), kDashes.end(), at) != kDashes.end()) text += '-';
    constexpr const char* kDigits = "0123456789abcdef";
    text += {kDigits[uuid[at] >> 4U], kDigits[uuid[at] & 15U]};
  }
  return text;
}

std::string CudaDevice::name() const {
  std::array<char, 256> text{};
  const int error = cuda_->api().device_get_name(text.data(), text.size(), handle_);
  return error == 0 ? text.data() : "";
}

Status CudaDevice::select() const {
  return outcome("cuCtxSetCurrent", cuda_->api().context_set_current(context_));
}

Status CudaDevice::outcome(const char* call, int error) const {
  return error == 0 ? Status() : cuda_->outcome(call, error).within(name_of(index_));
}

int CudaDevice::wait_for(void* event, const std::string& call) const {
  const StallWatch::Wait watched(*watch_, call + " waits for " + name_of(index_));
  return cuda_->api().event_synchronize(event);
}

Result<std::byte*> CudaDevice::get_pinned(std::size_t bytes) const {
  const CurrentContext here = enter();
  void* memory = nullptr;
  Status status =
      outcome("cuMemHostAlloc", cuda_->api().host_alloc(&memory, bytes, kPortableMemory));
  if (!status.ok()) {
    return status.within("no " + std::to_string(bytes) +
                         " bytes of pinned host memory, through which a device's tensors go");
  }
  return static_cast<std::byte*>(memory);
}

void CudaDevice::give_back_pinned(std::byte* memory) const {
  const CurrentContext here = enter();
  cuda_->api().host_free(memory);
}

Status CudaDevice::check(const CudaStream& stream) const {
  const auto unusable = [this](const std::string& what) {
    return Status(Code::kInvalidArgument, "the stream given with tensors on " + name_of(index_) +
                                              " cannot be used: " + what);
  };
  const auto handle = reinterpret_cast<std::uintptr_t>(stream.handle);
  if (handle == kStreamPerThread) {
    return unusable(
        "cudaStreamPerThread is another one in each thread, those of the library too; give a "
        "stream of your own");
  }
  if (handle > kLegacyStream) {
    void* context = nullptr;
    const int error = cuda_->api().stream_get_context(stream.handle, &context);
    if (is_of_device(error)) return outcome("cuStreamGetCtx", error);
    if (error != 0) return unusable(cuda_->outcome("cuStreamGetCtx", error).message());
    if (context != context_) {
      return unusable(
          "it belongs to another device, or to a context that is not its device's primary one; "
          "give a stream of the device on which the tensors lie");
    }
  }
  int capturing = 0;
  const int error = cuda_->api().stream_is_capturing(stream.handle, &capturing);
  if (is_of_device(error)) return outcome("cuStreamIsCapturing", error);
  if (error != 0) return unusable(cuda_->outcome("cuStreamIsCapturing", error).message());
  if (capturing != 0) {
    return unusable(
        "it is being captured into a CUDA graph, in which a collective of the library cannot be; "
        "end the capture before the call");
  }
  return {};
}

}  // namespace elastic::device
