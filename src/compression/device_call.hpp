#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "compression/device_codec.hpp"
#include "compression/device_residuals.hpp"
#include "compression/device_work.hpp"
#include "elastic/gradient_compressor.hpp"

namespace elastic::codecs {

/// One call for tensors on a device that has kernels. Within a function that is given one, only the
/// collectives may fail without consequences: see require_result.
struct DeviceCall {
  std::span<const NamedTensor> tensors;
  ReduceOp op = ReduceOp::kSum;
  const Compression& compression;
  DeviceCodec& codec;
  DeviceWork& work;
  std::vector<DeviceTensorMemory*> memories;  ///< of the tensors; null where one goes whole

  /// The divisor of the sums.
  float divisor(std::size_t contributors) const {
    return op == ReduceOp::kAverage ? static_cast<float>(contributors) : 1.0F;
  }
};

/// Memory that calls use in turns.
struct DeviceScratch {
  device::DeviceBuffer sent;      ///< this worker's halves, or its encoded blocks
  device::DeviceBuffer gathered;  ///< the encoded blocks of all workers
};

/// Throws Error where `status` is a failure before the result: nothing has changed.
void require_device(const Status& status);
/// Throws Error where `status` is a failure behind the exchange: the other workers have the result.
void require_result(const Status& status);

/// Sums the tensors as halves. Stages the residuals.
Contributors sum_halves_on_device(const DeviceCall& call,
                                  const GradientCompressor::Collectives& collectives,
                                  DeviceScratch& scratch, GradientCompressor::Traffic& traffic);

/// Sums the tensors by an exchange of encoded blocks, of `kind` but for tensors that go whole.
/// Stages the residuals.
Contributors exchange_from_device(const DeviceCall& call, CompressionKind kind,
                                  const GradientCompressor::Collectives& collectives,
                                  DeviceScratch& scratch, GradientCompressor::Traffic& traffic);

}  // namespace elastic::codecs
