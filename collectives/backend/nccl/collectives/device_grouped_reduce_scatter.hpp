#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "collectives/backend/nccl/collectives/device_work.hpp"
#include "collectives/device/block_pool.hpp"
#include "collectives/plan/group_slots.hpp"

namespace elastic::collectives::nccl {

/// A reduce_scatter of several tensors of one dtype, by one group of calls of NCCL. Large tensors
/// with parts of equal size are read in place, by one call each. The parts of all others are first
/// copied to slots (plan::GroupSlots), which take one call together: a copy on the device costs
/// less than a call for each of many small tensors, and less than a reduce to each rank, for which
/// NCCL lacks its faster algorithms.
class DeviceGroupedReduceScatter final : public DeviceWork {
 public:
  DeviceGroupedReduceScatter(Where where, std::span<const DeviceTensor> tensors, ReduceOp op,
                             std::uint32_t divisor, int rank, int size);

 private:
  Status allocate() override;
  std::size_t bytes() const override { return bytes_; }
  Status pack(void* via) override;
  Status launch(TimePoint until, const Meanwhile& meanwhile) override;

  /// Elements from one address to another one.
  struct Reduction {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::size_t count = 0;  ///< of the part of one rank
  };
  std::vector<Reduction> reductions() const;
  std::size_t element() const { return size_of(dtype_); }

  const DType dtype_;
  const ReduceOp op_;
  const std::uint32_t divisor_;
  const std::size_t rank_;
  const std::size_t size_;
  std::vector<DeviceTensor> packed_;  // those that go to slots
  std::vector<DeviceTensor> direct_;  // the others
  const std::size_t bytes_;           // of all tensors
  const plan::GroupSlots slots_;      // of `packed_`
  device::BlockPool::Block memory_;   // of the slots; empty if there are none
  std::vector<std::size_t> places_;   // of the parts of `direct_` in the result, in bytes
};

}  // namespace elastic::collectives::nccl
