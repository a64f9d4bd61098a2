#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <vector>

namespace elastic::testing {

/// The device calls that a program makes itself, through the CUDA driver or the stand-in for it.
/// They need neither headers nor libraries of CUDA. Any failure ends the program.
class Gpu {
 public:
  /// Device `index` is current for this thread while this lives. `driver`: its file.
  explicit Gpu(int index, const char* driver = kDriver) : library_(open(driver)) {
    if (library_ == nullptr) die("no driver");
    must("cuInit", call<int(unsigned)>("cuInit")(0));
    int device = 0;
    must("cuDeviceGet", call<int(int*, int)>("cuDeviceGet")(&device, index));
    must("cuDevicePrimaryCtxRetain",
         call<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context_, device));
    must("cuCtxPushCurrent", call<int(void*)>("cuCtxPushCurrent_v2")(context_));
    must("cuStreamCreate", call<int(void**, unsigned)>("cuStreamCreate")(&stream_, 1));
  }

  ~Gpu() {
    call<int(void*)>("cuStreamDestroy_v2")(stream_);
    call<int(void**)>("cuCtxPopCurrent_v2")(&context_);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// How many there are; 0 where there is no driver.
  static int devices() {
    void* const library = open(kDriver);
    if (library == nullptr) return 0;
    int count = 0;
    const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(library, "cuInit"));
    const auto get = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuDeviceGetCount"));
    return init(0) == 0 && get(&count) == 0 ? count : 0;
  }

  template <typename Signature>
  Signature* call(const char* name) const {
    auto* const function = reinterpret_cast<Signature*>(::dlsym(library_, name));
    if (function == nullptr) die(std::string("no ") + name);
    return function;
  }
  /// Copies at once, by a stream that waits for no other.
  void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) const {
    if (bytes == 0) return;
    using Copy = int(std::uint64_t, std::uint64_t, std::size_t, void*);
    must("cuMemcpyAsync", call<Copy>("cuMemcpyAsync")(to, from, bytes, stream_));
    must("cuStreamSynchronize", call<int(void*)>("cuStreamSynchronize")(stream_));
  }
  /// Bytes of the device's memory that are in use, by all processes.
  std::size_t used() const {
    std::size_t left = 0;
    std::size_t all = 0;
    must("cuMemGetInfo", call<int(std::size_t*, std::size_t*)>("cuMemGetInfo_v2")(&left, &all));
    return all - left;
  }
  static void must(const char* what, int error) {
    if (error != 0) die(std::string(what) + ": error " + std::to_string(error));
  }

 private:
  static constexpr const char* kDriver = "libcuda.so.1";
  static void* open(const char* driver) { return ::dlopen(driver, RTLD_NOW | RTLD_LOCAL); }
  [[noreturn]] static void die(const std::string& what) {
    std::fprintf(stderr, "CUDA: %s\n", what.c_str());
    std::_Exit(4);
  }

  void* library_;
  void* context_ = nullptr;
  void* stream_ = nullptr;
};

/// Elements in pinned memory of the host.
template <typename T>
class PinnedArray {
 public:
  PinnedArray(const Gpu& gpu, const std::vector<T>& content) : gpu_(gpu), count_(content.size()) {
    Gpu::must("cuMemHostAlloc", gpu_.call<int(void**, std::size_t, unsigned)>("cuMemHostAlloc")(
                                    &memory_, bytes(), 0));
    std::copy(content.begin(), content.end(), static_cast<T*>(memory_));
  }
  ~PinnedArray() { gpu_.call<int(void*)>("cuMemFreeHost")(memory_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;

  const T* data() const { return static_cast<const T*>(memory_); }
  std::size_t bytes() const { return count_ * sizeof(T); }

 private:
  const Gpu& gpu_;
  void* memory_ = nullptr;
  std::size_t count_;
};

/// A stream, and what programs queue on it. Waits for no other.
class GpuStream {
 public:
  explicit GpuStream(const Gpu& gpu) : gpu_(gpu) {
    Gpu::must("cuStreamCreate", gpu_.call<int(void**, unsigned)>("cuStreamCreate")(&handle_, 1));
  }
  ~GpuStream() { gpu_.call<int(void*)>("cuStreamDestroy_v2")(handle_); }
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  void* handle() const { return handle_; }

  /// Work that is queued later on this stream waits until `gate` is true.
  void hold(const std::atomic<bool>& gate) const {
    const auto wait = [](void* data) { static_cast<const std::atomic<bool>*>(data)->wait(false); };
    Gpu::must("cuLaunchHostFunc", gpu_.call<int(void*, void (*)(void*), void*)>("cuLaunchHostFunc")(
                                      handle_, wait, const_cast<std::atomic<bool>*>(&gate)));
  }
  /// `from` is pinned, or the driver waits for the stream; it must stay until it was read.
  template <typename T>
  void write(std::uint64_t to, const PinnedArray<T>& from) const {
    using Copy = int(std::uint64_t, std::uint64_t, std::size_t, void*);
    Gpu::must("cuMemcpyAsync",
              gpu_.call<Copy>("cuMemcpyAsync")(to, reinterpret_cast<std::uintptr_t>(from.data()),
                                               from.bytes(), handle_));
  }
  /// From device to device.
  void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) const {
    using Copy = int(std::uint64_t, std::uint64_t, std::size_t, void*);
    Gpu::must("cuMemcpyAsync", gpu_.call<Copy>("cuMemcpyAsync")(to, from, bytes, handle_));
  }
  void synchronize() const {
    Gpu::must("cuStreamSynchronize", gpu_.call<int(void*)>("cuStreamSynchronize")(handle_));
  }

 private:
  const Gpu& gpu_;
  void* handle_ = nullptr;
};

/// Elements in the memory of a device, `shift` elements behind where it begins.
template <typename T>
class GpuArray {
 public:
  GpuArray(const Gpu& gpu, std::size_t count, std::size_t shift = 0)
      : gpu_(gpu), count_(count), shift_(shift) {
    Gpu::must("cuMemAlloc", gpu_.call<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(
                                &memory_, (count + shift + 1) * sizeof(T)));
  }
  /// An array with this content.
  GpuArray(const Gpu& gpu, const std::vector<T>& content, std::size_t shift = 0)
      : GpuArray(gpu, content.size(), shift) {
    gpu.copy(address(), reinterpret_cast<std::uintptr_t>(content.data()), bytes());
  }
  GpuArray(GpuArray&& other) noexcept
      : gpu_(other.gpu_), memory_(other.memory_), count_(other.count_), shift_(other.shift_) {
    other.memory_ = 0;
  }
  ~GpuArray() {
    if (memory_ != 0) gpu_.call<int(std::uint64_t)>("cuMemFree_v2")(memory_);
  }
  GpuArray& operator=(GpuArray&&) = delete;

  std::uint64_t address() const { return memory_ + shift_ * sizeof(T); }
  T* data() const { return reinterpret_cast<T*>(address()); }
  std::size_t count() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

  std::vector<T> read() const {
    std::vector<T> content(count_);
    gpu_.copy(reinterpret_cast<std::uintptr_t>(content.data()), address(), bytes());
    return content;
  }

 private:
  const Gpu& gpu_;
  std::uint64_t memory_ = 0;
  std::size_t count_;
  std::size_t shift_;
};

}  // namespace elastic::testing
