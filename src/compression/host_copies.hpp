#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collectives/device/devices.hpp"
#include "collectives/device/staged_tensors.hpp"
#include "elastic/gradient_compressor.hpp"

namespace elastic::codecs {

/// The tensors of a call that lie on a device, in host memory: where no kernels can compress them.
/// Belongs to one thread.
class HostCopies {
 public:
  /// Waits until the tensors are in host memory. Throws Error as GradientCompressor.
  HostCopies(device::Devices& devices, std::span<const NamedTensor> tensors, CudaStream stream);

  /// For the host's codecs: floats, but for doubles that go whole. To be summed in place.
  std::span<const NamedTensor> tensors() const { return tensors_; }

  /// Divides the sums, and waits until they are in the tensors on the device. A failure, see
  /// require_result, leaves these undefined.
  void write_back(float divisor);

 private:
  std::shared_ptr<device::StagedTensors> staged_;
  std::vector<std::vector<float>> floats_;  // of tensors of doubles that are compressed
  std::vector<NamedTensor> tensors_;
};

}  // namespace elastic::codecs
