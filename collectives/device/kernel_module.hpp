#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/device/cuda_device.hpp"

namespace elastic::device {

/// Kernels that the driver has loaded for a device from an image (a fat binary of nvcc). Immutable;
/// any thread.
class KernelModule {
 public:
  /// kUnavailable if the image has nothing for this device, or not all kernels of these names.
  static Result<std::unique_ptr<KernelModule>> load(std::shared_ptr<CudaDevice> device,
                                                    std::span<const std::byte> image,
                                                    std::span<const char* const> names);
  ~KernelModule();
  KernelModule(const KernelModule&) = delete;
  KernelModule& operator=(const KernelModule&) = delete;

  /// Queues the kernel at this place among the names, with one parameter, which is copied. Within
  /// CudaDevice::enter.
  Status launch(std::size_t kernel, unsigned blocks, unsigned threads, const void* parameter,
                void* stream) const;

 private:
  KernelModule(std::shared_ptr<CudaDevice> device, void* module)
      : device_(std::move(device)), module_(module) {}

  const std::shared_ptr<CudaDevice> device_;
  void* const module_;
  std::vector<void*> functions_;
};

}  // namespace elastic::device
