#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "collectives/backend/nccl/collectives/device_work.hpp"

namespace elastic::collectives::nccl {

/// An allgather. Blocks of equal size take one ncclAllGather, others one broadcast each, directly
/// to their places, in one group. Padded blocks would also need one call only, but take memory and
/// time as if all were as large as the largest, and a further copy to close the gaps.
class DeviceAllgather final : public DeviceWork {
 public:
  /// `counts`: elements of each rank.
  DeviceAllgather(Where where, const DeviceTensor& block, std::span<const std::uint64_t> counts)
      : DeviceWork(std::move(where)), block_(block), counts_(counts.begin(), counts.end()) {}

 private:
  Status allocate() override;
  Status launch(TimePoint until, const Meanwhile& meanwhile) override;
  Status broadcast_each(TimePoint until, const Meanwhile& meanwhile);

  const DeviceTensor block_;
  const std::vector<std::uint64_t> counts_;
};

}  // namespace elastic::collectives::nccl
