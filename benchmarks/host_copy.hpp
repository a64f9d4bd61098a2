#pragma once

#include <cstddef>
#include <vector>

#include "benchmarks/rank_device.hpp"
#include "elastic/memory.hpp"
#include "elastic/types.hpp"

namespace elastic::bench {

/// Memory of the device, or zeros of the host where that is null.
Memory tensor_memory(const RankDevice* device, std::size_t bytes);
/// All of it as a tensor.
TensorView tensor_in(const Memory& memory, DType dtype, const RankDevice* device);

/// A tensor as the host sees it: itself, or, where it lies on a device, a copy. Refers to the
/// tensor and the device.
class HostCopy {
 public:
  /// `device` is null where the tensor lies in host memory.
  HostCopy(const TensorView& tensor, const RankDevice* device);
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;

  const TensorView& view() const { return view_; }
  void read() const;   ///< the tensor, to be looked at
  void write() const;  ///< to the tensor

 private:
  const RankDevice* const device_;
  const TensorView tensor_;
  std::vector<std::byte> copy_;
  TensorView view_;
};

}  // namespace elastic::bench
