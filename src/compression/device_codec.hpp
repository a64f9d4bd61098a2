#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.hpp"
#include "collectives/device/cuda_device.hpp"
#include "collectives/device/device_buffer.hpp"
#include "collectives/device/kernel_module.hpp"
#include "collectives/kernels/device/codec/image.hpp"
#include "collectives/kernels/device/codec/kernel_names.hpp"
#include "collectives/kernels/device/codec/parameters.hpp"

namespace elastic::codecs {

/// Encodes and decodes gradients on a device, by kernels with the bits of the host's codecs. Each
/// function queues kernels on a stream, and is called within CudaDevice::enter.
///
/// Belongs to one thread at a time, with one stream of work at a time: selections share memory.
class DeviceCodec {
 public:
  /// kUnavailable where the device cannot load the kernels of `image`.
  static Result<std::unique_ptr<DeviceCodec>> load(
      std::shared_ptr<device::CudaDevice> device,
      std::span<const std::byte> image = kernels::codec::image());

  const std::shared_ptr<device::CudaDevice>& device() const { return device_; }

  Status queue(const kernels::codec::EncodeHalf& one, void* stream) const;
  Status queue(const kernels::codec::DecodeHalf& one, void* stream) const;
  Status queue(const kernels::codec::Divide& one, void* stream) const;
  Status queue(const kernels::codec::Stage& one, void* stream) const;
  Status queue(const kernels::codec::EncodeInt8& one, void* stream) const;
  Status queue(const kernels::codec::EncodeWhole& one, void* stream) const;
  Status queue(const kernels::codec::Clear& one, void* stream) const;
  Status queue(const kernels::codec::Rescale& one, void* stream) const;
  /// `selection` and `parts` are replaced by memory of this codec.
  Status queue(kernels::codec::EncodeTopK one, void* stream);
  Status queue(const kernels::codec::AddDense& one, void* stream) const;
  Status queue(const kernels::codec::AddTopK& one, void* stream) const;

 private:
  DeviceCodec(std::shared_ptr<device::CudaDevice> device,
              std::unique_ptr<device::KernelModule> module)
      : device_(std::move(device)), module_(std::move(module)) {}
  template <typename Parameters>
  Status for_each(kernels::codec::Kernel kernel, const Parameters& parameters, std::uint64_t count,
                  void* stream) const;
  template <typename Parameters>
  Status launch(kernels::codec::Kernel kernel, const Parameters& parameters, std::uint64_t blocks,
                unsigned threads, void* stream) const;

  const std::shared_ptr<device::CudaDevice> device_;
  const std::unique_ptr<device::KernelModule> module_;
  device::DeviceBuffer selection_;
  device::DeviceBuffer parts_;
};

}  // namespace elastic::codecs
