#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "collectives/backend/nccl/device_work.hpp"
#include "collectives/device/pinned_pool.hpp"

namespace elastic::collectives::nccl {

/// A reduce_scatter. NCCL's parts are equally large: where the ranks' are not, they are copied
/// apart first, each to a place that has room for the largest. That costs a copy on the device; a
/// reduce to each rank would cost none, but is as many calls as there are ranks, and none of NCCL's
/// faster ways.
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
  Status prepare() override;
  std::size_t bytes() const override { return data_.bytes(); }
  Status launch(TimePoint until, const Meanwhile& meanwhile) override;
  Status perform(std::uint64_t from, std::uint64_t to, TimePoint until, const Meanwhile& meanwhile);
  Status set_apart();

  bool equal() const { return counts_.size() * largest_ == data_.count; }
  /// Of a rank's part among those that were set apart.
  std::size_t offset(std::size_t rank) const { return rank * largest_ * size_of(data_.dtype); }

  const DeviceTensor data_;
  const ReduceOp op_;
  const std::uint32_t divisor_;
  const std::vector<std::uint64_t> counts_;
  const std::size_t rank_;
  std::size_t largest_ = 0;          // part
  device::PinnedPool::Block apart_;  // of the device; where the parts are not equal
};

}  // namespace elastic::collectives::nccl
