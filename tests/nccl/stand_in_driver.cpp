#include "nccl/stand_in_driver.hpp"

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>

namespace elastic::nccl_stand_in {

namespace {

void* driver() {
  const char* const file = std::getenv("NCCL_STAND_IN_DRIVER");
  static void* const the = ::dlopen(file == nullptr ? "libcuda.so.1" : file, RTLD_NOW | RTLD_LOCAL);
  return the;
}

}  // namespace

int launch_host_func(void* stream, void (*function)(void*), void* data) {
  using Call = int (*)(void*, void (*)(void*), void*);
  static const auto the = reinterpret_cast<Call>(::dlsym(driver(), "cuLaunchHostFunc"));
  return the(stream, function, data);
}

std::byte* inside(const void* address, std::size_t bytes) {
  using Call = void* (*)(unsigned long long, std::size_t);
  static const auto the = reinterpret_cast<Call>(::dlsym(driver(), "cuda_stand_in_inside"));
  return static_cast<std::byte*>(the(reinterpret_cast<std::uintptr_t>(address), bytes));
}

int allocate(void** memory, std::size_t bytes) {
  using Call = int (*)(unsigned long long*, std::size_t);
  static const auto the = reinterpret_cast<Call>(::dlsym(driver(), "cuMemAlloc_v2"));
  unsigned long long made = 0;
  const int error = the(&made, bytes);
  if (error == 0) *memory = reinterpret_cast<void*>(made);
  return error;
}

int free(void* memory) {
  using Call = int (*)(unsigned long long);
  static const auto the = reinterpret_cast<Call>(::dlsym(driver(), "cuMemFree_v2"));
  return the(reinterpret_cast<std::uintptr_t>(memory));
}

}  // namespace elastic::nccl_stand_in
