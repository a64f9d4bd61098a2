#pragma once

#include <cstddef>
#include <cstring>
#include <cuda_runtime_api.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace elastic::gpu {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

/// Why nothing can run here; empty: there is a device.
inline std::string no_device() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return {};
  return std::string("no CUDA device: ") +
         (error == cudaSuccess ? "there are 0" : cudaGetErrorString(error));
}

/// Memory of the current device.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) : bytes_(bytes) {
    check(cudaMalloc(&data_, bytes), "cudaMalloc");
  }
  explicit DeviceMemory(const std::vector<std::byte>& content) : DeviceMemory(content.size()) {
    write(content);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { static_cast<void>(cudaFree(data_)); }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t bytes() const { return bytes_; }

  void write(const std::vector<std::byte>& content) const {
    check(cudaMemcpy(data_, content.data(), content.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  /// Reads the memory after all work that the device has been given.
  std::vector<std::byte> read() const { return read(0, bytes_); }
  std::vector<std::byte> read(std::size_t offset, std::size_t bytes) const {
    std::vector<std::byte> content(bytes);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaMemcpy(content.data(), data() + offset, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return content;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// That waits for no other.
class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { static_cast<void>(cudaStreamDestroy(stream_)); }

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace elastic::gpu
