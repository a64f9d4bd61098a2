#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/backend/nccl/collectives/device_work.hpp"

namespace elastic::collectives::nccl {

/// An allgather of several tensors as one unit. This rank's blocks are copied to its place in the
/// result, in the layout of plan::GroupBlock, whose head stays empty here: the ranks have exchanged
/// their counts. NCCL gathers these places, in one call for any number of tensors. The copy is a
/// small part of the one that takes the result to the outputs.
class DeviceGroupedAllgather final : public DeviceWork {
 public:
  /// `counts`: elements of each rank's block of each tensor, those of rank 0 first.
  DeviceGroupedAllgather(Where where, std::span<const DeviceTensor> tensors,
                         std::span<const std::uint64_t> counts, int rank);

 private:
  /// The blocks of one rank in the result.
  struct RankBlock {
    std::size_t offset = 0;  ///< in bytes
    std::size_t bytes = 0;
    std::vector<DeviceTensor> tensors;  ///< those with elements
  };

  Status allocate() override;
  Status pack(void* via) override;
  Status launch(TimePoint until, const Meanwhile& meanwhile) override;
  void lay_out(std::span<const DeviceTensor> tensors, std::span<const std::uint64_t> counts);

  const std::size_t rank_;
  std::vector<RankBlock> blocks_;  // by rank
};

}  // namespace elastic::collectives::nccl
