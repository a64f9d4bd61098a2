#pragma once

#include <cstddef>
#include <cstring>
#include <cuda_runtime_api.h>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace digits::cuda {

inline void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string("CUDA: ") + call + ": " + cudaGetErrorString(error));
}

/// A device, which is current for the thread that made it, and a stream of it that waits for no
/// other.
class DeviceStream {
 public:
  explicit DeviceStream(int device) : device_(device) {
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  ~DeviceStream() { static_cast<void>(cudaStreamDestroy(stream_)); }

  int device() const { return device_; }
  cudaStream_t get() const { return stream_; }
  void synchronize() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

/// Elements in the memory of a device, zeros at first. Writes and reads come in the order of the
/// stream, which must outlive it. As an entry of elastic::State it comes to the host when that is
/// needed: when another worker joins, or for a checkpoint.
template <typename T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceArray(const DeviceStream& stream, std::size_t count) : stream_(stream), count_(count) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes()), "cudaMalloc");
    data_ = static_cast<T*>(memory);
    clear();
  }
  DeviceArray(const DeviceStream& stream, std::span<const T> values)
      : DeviceArray(stream, values.size()) {
    write(values);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { static_cast<void>(cudaFree(data_)); }

  T* data() const { return data_; }
  std::size_t count() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

  void clear() { check(cudaMemsetAsync(data_, 0, bytes(), stream_.get()), "cudaMemsetAsync"); }
  /// At most as many as there are. Waits for the copy: they are not pinned, and CUDA may read such
  /// memory after cudaMemcpyAsync has returned, where the device reads the host's pages itself
  /// (GH200, HMM).
  void write(std::span<const T> values) {
    check(cudaMemcpyAsync(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice,
                          stream_.get()),
          "cudaMemcpyAsync");
    stream_.synchronize();
  }
  /// As many as there are, when they are there.
  void read(std::span<T> values) const {
    check(cudaMemcpyAsync(values.data(), data_, bytes(), cudaMemcpyDeviceToHost, stream_.get()),
          "cudaMemcpyAsync");
    stream_.synchronize();
  }

  std::vector<std::byte> save() const {
    std::vector<T> values(count_);
    read(values);
    const auto saved = std::as_bytes(std::span<const T>(values));
    return {saved.begin(), saved.end()};
  }
  void load(std::span<const std::byte> saved) {
    if (saved.size() != bytes()) {
      throw std::runtime_error("a device's array of " + std::to_string(bytes()) +
                               " bytes was to be loaded from " + std::to_string(saved.size()));
    }
    std::vector<T> values(count_);
    std::memcpy(values.data(), saved.data(), saved.size());
    write(values);
  }

 private:
  const DeviceStream& stream_;
  std::size_t count_;
  T* data_ = nullptr;
};

}  // namespace digits::cuda
