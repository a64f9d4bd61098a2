#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "collectives/backend/nccl/device_work.hpp"

namespace elastic::collectives::nccl {

/// An allgather: one of NCCL's where the ranks' blocks are equally large, otherwise a broadcast of
/// each, into its place. Padded blocks would be one call as well, but take as much memory and time
/// as if all were as large as the largest, and have to be moved together afterwards.
class DeviceAllgather final : public DeviceWork {
 public:
  /// `counts`: elements of each rank.
  DeviceAllgather(Where where, const DeviceTensor& block, std::span<const std::uint64_t> counts)
      : DeviceWork(std::move(where)), block_(block), counts_(counts.begin(), counts.end()) {}

 private:
  Status prepare() override;
  Status launch(TimePoint until, const Meanwhile& meanwhile) override;
  Status broadcast_each(TimePoint until, const Meanwhile& meanwhile);

  const DeviceTensor block_;
  const std::vector<std::uint64_t> counts_;
};

}  // namespace elastic::collectives::nccl
