#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "collectives/backend/nccl/collectives/device_work.hpp"
#include "collectives/device/block_pool.hpp"

namespace elastic::collectives::nccl {

/// A reduce_scatter. NCCL requires parts of equal size. Parts of other sizes are first copied to
/// slots of the largest part's size. This costs a copy on the device. One reduce to each rank would
/// cost no copy, but as many calls as there are ranks, without NCCL's faster algorithms for
/// reduce_scatter.
class DeviceReduceScatter final : public DeviceWork {
 public:
  /// `counts`: elements of each rank's part.
  DeviceReduceScatter(Where where, const DeviceTensor& data, ReduceOp op, std::uint32_t divisor,
                      std::span<const std::uint64_t> counts, int rank)
      : DeviceWork(std::move(where)),
        data_(data),
        op_(op),
        divisor_(divisor),
        counts_(counts.begin(), counts.end()),
        rank_(static_cast<std::size_t>(rank)) {}

 private:
  Status allocate() override;
  std::size_t bytes() const override { return data_.bytes(); }
  Status pack(void* via) override;
  Status launch(TimePoint until, const Meanwhile& meanwhile) override;
  Status perform(std::uint64_t from, std::uint64_t to, TimePoint until, const Meanwhile& meanwhile);

  bool equal() const { return counts_.size() * largest_ == data_.count; }
  /// Bytes from the start of the slots to the slot of `rank`.
  std::size_t offset(std::size_t rank) const { return rank * largest_ * size_of(data_.dtype); }

  const DeviceTensor data_;
  const ReduceOp op_;
  const std::uint32_t divisor_;
  const std::vector<std::uint64_t> counts_;
  const std::size_t rank_;
  std::size_t largest_ = 0;         // elements of the largest part
  device::BlockPool::Block slots_;  // the slots, on the device; empty if the parts are equal
};

}  // namespace elastic::collectives::nccl
