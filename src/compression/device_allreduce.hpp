#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/device/devices.hpp"
#include "compression/device_call.hpp"
#include "compression/device_codec.hpp"
#include "compression/device_residuals.hpp"
#include "elastic/gradient_compressor.hpp"

namespace elastic::codecs {

/// Compressed sums of tensors that lie on a device, with residuals there. The bits, and the bytes
/// that travel, are those of tensors in host memory, so ranks may differ in where their tensors
/// lie.
///
/// Belongs to one thread at a time.
class DeviceAllreduce {
 public:
  /// Refers to both, which outlive it. `driver` is as for Devices, `image` as for DeviceCodec.
  DeviceAllreduce(const GradientCompressor::Collectives& collectives,
                  const Compression& compression, const std::string& driver = "",
                  std::span<const std::byte> image = kernels::codec::image())
      : collectives_(collectives), compression_(compression), image_(image), devices_(driver) {}

  /// The codec of the device of the tensors; null if that has no kernels, which a line in the log
  /// explains. Throws Error(kInvalidArgument) where tensors or stream are not usable.
  DeviceCodec* codec_of(std::span<const NamedTensor> tensors, CudaStream stream);

  /// Sums the tensors, of the device of `codec`, and puts the residuals in force. `whole` sends
  /// residuals in full. Throws Error as GradientCompressor.
  Contributors allreduce(DeviceCodec& codec, std::span<const NamedTensor> tensors, ReduceOp op,
                         CudaStream stream, bool whole, GradientCompressor::Traffic& traffic);

  /// The unsent part of the tensor of this name, copied to host memory; empty if there is none.
  std::vector<float> residual(std::string_view name) const;

  device::Devices& devices() { return devices_; }
  DeviceResiduals& residuals() { return residuals_; }

 private:
  std::vector<DeviceTensorMemory*> memories_of(std::span<const NamedTensor> tensors,
                                               const DeviceCodec& codec, void* stream);

  const GradientCompressor::Collectives& collectives_;
  const Compression& compression_;
  const std::span<const std::byte> image_;
  device::Devices devices_;
  std::map<const device::CudaDevice*, std::unique_ptr<DeviceCodec>> codecs_;  // null: no kernels
  DeviceScratch scratch_;
  DeviceResiduals residuals_;
};

}  // namespace elastic::codecs
