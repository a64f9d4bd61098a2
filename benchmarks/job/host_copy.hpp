#pragma once

#include <cstddef>
#include <vector>

#include "benchmarks/job/rank_device.hpp"
#include "elastic/allocation.hpp"
#include "elastic/types.hpp"

namespace elastic::bench {

/// Memory of the device; if that is null, zeros in host memory.
Allocation tensor_memory(const RankDevice* device, std::size_t bytes);
/// The whole memory as a tensor.
TensorView tensor_in(const Allocation& memory, DType dtype, const RankDevice* device);

/// Access to a tensor from the host: the tensor itself in host memory, or a copy of one on a
/// device. The tensor and the device must outlive it.
class HostCopy {
 public:
  /// `device` is null for a tensor in host memory.
  HostCopy(const TensorView& tensor, const RankDevice* device);
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;

  const TensorView& view() const { return view_; }
  void read() const;   ///< copies the tensor to `view`
  void write() const;  ///< copies `view` to the tensor

 private:
  const RankDevice* const device_;
  const TensorView tensor_;
  std::vector<std::byte> copy_;
  TensorView view_;
};

}  // namespace elastic::bench
