#pragma once

#include <cstddef>
#include <cuda_runtime_api.h>
#include <memory>
#include <vector>

namespace elastic::kernels::device {

/// Frees what CUDA allocated; what fails then has failed before.
struct PinnedFree {
  void operator()(void* memory) const { static_cast<void>(cudaFreeHost(memory)); }
};
struct DeviceFree {
  void operator()(void* memory) const { static_cast<void>(cudaFree(memory)); }
};

/// Memory for a table, on the host and on the device, and when it is free to be used again.
class TableSlot {
 public:
  TableSlot() = default;
  TableSlot(const TableSlot&) = delete;
  TableSlot& operator=(const TableSlot&) = delete;
  /// Waits until nothing uses it.
  ~TableSlot();

  [[nodiscard]] cudaError_t allocate(std::size_t bytes);

  std::byte* host() const { return static_cast<std::byte*>(host_.get()); }
  void* device() const { return device_.get(); }
  std::size_t bytes() const { return bytes_; }

  /// Work on `stream` until now uses it, and no later work.
  [[nodiscard]] cudaError_t release_after(cudaStream_t stream);
  bool is_free() const { return cudaEventQuery(released_) == cudaSuccess; }

 private:
  std::unique_ptr<void, PinnedFree> host_;
  std::unique_ptr<void, DeviceFree> device_;
  cudaEvent_t released_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Slots of one device. They are kept, and there are as many as were ever in use at once.
class TableSlots {
 public:
  /// Leaves in `slot` a free one with that many bytes or more, which stays of these.
  [[nodiscard]] cudaError_t find(std::size_t bytes, TableSlot*& slot);

  /// There are then at least `count` of so many bytes, in use or not.
  [[nodiscard]] cudaError_t reserve(std::size_t bytes, std::size_t count);

 private:
  [[nodiscard]] cudaError_t add(std::size_t bytes);

  std::vector<std::unique_ptr<TableSlot>> slots_;
};

}  // namespace elastic::kernels::device
