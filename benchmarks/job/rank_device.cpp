#include "benchmarks/job/rank_device.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>
#include <utility>

#include "base/cuda_driver.hpp"
#include "elastic/error.hpp"

namespace elastic::bench {

namespace {

constexpr unsigned kNonBlocking = 1;  // of cuda.h: the stream does not wait for the default stream

std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

std::string counted(int count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

Result<CudaDriver> find_driver() {
  const CudaDriver driver = CudaDriver::find();
  if (!driver.usable()) return Status(Code::kUnavailable, "--device cuda: " + driver.missing);
  if (driver.devices > 0) return driver;
  return Status(Code::kUnavailable, "--device cuda: there is a CUDA driver, but no device");
}

}  // namespace

/// The functions of CUDA's driver that RankDevice uses, with the types of cuda.h.
struct RankDevice::Driver {
  int devices = 0;
  const char* missing = nullptr;  // the first function that the driver lacks

  int (*get_error_string)(int, const char**) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*context_retain)(void**, int) = nullptr;
  int (*context_release)(int) = nullptr;
  int (*context_push)(void*) = nullptr;
  int (*context_pop)(void**) = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
  int (*stream_synchronize)(void*) = nullptr;
  int (*allocate)(std::uint64_t*, std::size_t) = nullptr;
  int (*free)(std::uint64_t) = nullptr;
  int (*copy_to_host)(void*, std::uint64_t, std::size_t, void*) = nullptr;
  int (*copy_to_device)(std::uint64_t, const void*, std::size_t, void*) = nullptr;
  int (*get_bus_id)(char*, int, int) = nullptr;  // may be missing

  explicit Driver(const CudaDriver& found);

 private:
  template <typename Function>
  void find(void* library, Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr && missing == nullptr) missing = name;
  }
};

RankDevice::Driver::Driver(const CudaDriver& found) : devices(found.devices) {
  void* const library = found.library;
  find(library, get_error_string, "cuGetErrorString");
  find(library, device_get, "cuDeviceGet");
  find(library, context_retain, "cuDevicePrimaryCtxRetain");
  find(library, context_release, "cuDevicePrimaryCtxRelease_v2");
  find(library, context_push, "cuCtxPushCurrent_v2");
  find(library, context_pop, "cuCtxPopCurrent_v2");
  find(library, stream_create, "cuStreamCreate");
  find(library, stream_destroy, "cuStreamDestroy_v2");
  find(library, stream_synchronize, "cuStreamSynchronize");
  find(library, allocate, "cuMemAlloc_v2");
  find(library, free, "cuMemFree_v2");
  find(library, copy_to_host, "cuMemcpyDtoHAsync_v2");
  find(library, copy_to_device, "cuMemcpyHtoDAsync_v2");
  get_bus_id = reinterpret_cast<decltype(get_bus_id)>(::dlsym(library, "cuDeviceGetPCIBusId"));
}

Status RankDevice::check() {
  return find_driver().status();
}

void RankDevice::be_own_host_to_nccl(int local_ranks) {
  if (local_ranks <= CudaDriver::find().devices) return;
  ::setenv("NCCL_HOSTID", ("process-" + std::to_string(::getpid())).c_str(), /*overwrite=*/0);
}

Result<std::unique_ptr<RankDevice>> RankDevice::open(int local_rank, int local_ranks) {
  const auto found = find_driver();
  if (!found.ok()) return found.status();
  auto driver = std::make_unique<Driver>(found.value());
  if (driver->missing != nullptr) {
    return Status(Code::kUnavailable,
                  std::string("--device cuda: the CUDA driver has no ") + driver->missing);
  }
  const int index = local_rank % driver->devices;
  return std::unique_ptr<RankDevice>(new RankDevice(std::move(driver), index, local_ranks));
}

RankDevice::RankDevice(std::unique_ptr<Driver> driver, int index, int local_ranks)
    : driver_(std::move(driver)), index_(index), local_ranks_(local_ranks) {
  int device = 0;
  must("cuDeviceGet", driver_->device_get(&device, index));
  must("cuDevicePrimaryCtxRetain", driver_->context_retain(&context_, device));
  must("cuCtxPushCurrent", driver_->context_push(context_));
  must("cuStreamCreate", driver_->stream_create(&stream_, kNonBlocking));
  std::array<char, 32> bus{};
  const bool known = driver_->get_bus_id != nullptr &&
                     driver_->get_bus_id(bus.data(), static_cast<int>(bus.size()), device) == 0;
  identity_ = known ? bus.data() : "number " + std::to_string(index);
}

RankDevice::~RankDevice() {
  driver_->stream_destroy(stream_);
  driver_->context_pop(&context_);
  driver_->context_release(index_);
}

Device RankDevice::device() const {
  return {Device::Kind::kCuda, index_};
}

CudaStream RankDevice::stream() const {
  return {stream_};
}

const std::string& RankDevice::identity() const {
  return identity_;
}

std::string RankDevice::text() const {
  const std::string devices = counted(driver_->devices, "CUDA device");
  return local_ranks_ <= driver_->devices ? devices
                                          : counted(local_ranks_, "rank") + " on " + devices;
}

Allocation RankDevice::allocate(std::size_t bytes) const {
  std::uint64_t memory = 0;
  must("cuMemAlloc", driver_->allocate(&memory, bytes));
  return {std::shared_ptr<std::byte>(
              reinterpret_cast<std::byte*>(memory),
              [free = driver_->free](std::byte* data) { static_cast<void>(free(address(data))); }),
          bytes};
}

void RankDevice::copy(ConstTensorView from, TensorView to) const {
  if (to.device.kind == Device::Kind::kCuda) {
    must("cuMemcpyHtoDAsync",
         driver_->copy_to_device(address(to.data), from.data, to.bytes(), stream_));
  } else {
    must("cuMemcpyDtoHAsync",
         driver_->copy_to_host(to.data, address(from.data), to.bytes(), stream_));
  }
  wait();
}

void RankDevice::wait() const {
  must("cuStreamSynchronize", driver_->stream_synchronize(stream_));
}

void RankDevice::must(const char* call, int error) const {
  if (error == 0) return;
  const char* text = nullptr;
  driver_->get_error_string(error, &text);
  throw Error(ErrorCode::kUnavailable, std::string("CUDA: ") + call + ": " +
                                           (text != nullptr ? text : "unknown error") + " (error " +
                                           std::to_string(error) + ")");
}

}  // namespace elastic::bench
