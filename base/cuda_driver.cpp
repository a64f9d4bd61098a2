#include "base/cuda_driver.hpp"

#include <dlfcn.h>

namespace elastic {

namespace {

// As in CUDA's own header, which need not be here.
constexpr const char* kFile = "libcuda.so.1";
constexpr int kSuccess = 0;
constexpr int kNoDevice = 100;
using Init = int (*)(unsigned);
using GetInt = int (*)(int*);
using GetErrorString = int (*)(int, const char**);

template <typename Function>
Function look_up(void* handle, const char* name) {
  return reinterpret_cast<Function>(::dlsym(handle, name));
}

std::string what_failed(void* handle, const char* call, int error) {
  const char* text = nullptr;
  const auto get_text = look_up<GetErrorString>(handle, "cuGetErrorString");
  if (get_text != nullptr) get_text(error, &text);
  return std::string("the CUDA driver does not work: ") + call + ": " +
         (text != nullptr ? text : "error " + std::to_string(error));
}

}  // namespace

CudaDriver CudaDriver::find(const std::string& file) {
  CudaDriver found;
  void* const handle =
      ::dlopen(file.empty() ? kFile : file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    found.missing = std::string("there is no CUDA driver here (") + ::dlerror() + ")";
    return found;
  }
  const auto init = look_up<Init>(handle, "cuInit");
  const auto get_version = look_up<GetInt>(handle, "cuDriverGetVersion");
  const auto count_devices = look_up<GetInt>(handle, "cuDeviceGetCount");
  if (init == nullptr || get_version == nullptr || count_devices == nullptr) {
    found.missing = "what is there as CUDA driver (libcuda.so.1) is none";
    return found;
  }
  found.library = handle;
  int version = 0;  // a thousand times the major version, and ten times the minor one
  if (get_version(&version) == kSuccess) {
    found.version = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  const int error = init(0);
  if (error == kNoDevice) return found;
  if (error != kSuccess) {
    found.missing = what_failed(handle, "cuInit", error);
  } else if (const int counted = count_devices(&found.devices); counted != kSuccess) {
    found.missing = what_failed(handle, "cuDeviceGetCount", counted);
  }
  if (!found.usable()) found.library = nullptr;
  return found;
}

void* CudaDriver::loaded_already() {
  return ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace elastic
