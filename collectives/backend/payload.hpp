#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/buffer.hpp"
#include "collectives/backend/device_tensors.hpp"
#include "elastic/types.hpp"

namespace elastic::collectives {

/// A run of elements of one dtype within the data of a call. A call over several tensors has one
/// section per run; they follow one another without gaps, each starting at a multiple of
/// kSectionAlignment bytes.
struct Section {
  DType dtype = DType::kU8;
  std::size_t count = 0;
  std::size_t offset = 0;  ///< bytes from the start of the data
};
constexpr std::size_t bytes_of(const Section& section) {
  return section.count * size_of(section.dtype);
}
/// From the start of the data to the end of the last section.
inline std::size_t extent(const std::vector<Section>& sections) {
  return sections.empty() ? 0 : sections.back().offset + bytes_of(sections.back());
}
inline constexpr std::size_t kSectionAlignment = 64;
constexpr std::size_t aligned(std::size_t offset) {
  return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

/// A tensor that is not copied into the data of a call: too large for that. Its result comes to
/// `output`, for an average divided already; `input` may be the same memory. Not owned.
struct DirectTensor {
  DType dtype = DType::kU8;
  std::size_t count = 0;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;

  std::size_t bytes() const { return count * size_of(dtype); }
};

/// What a collective works on, and afterwards its result. Kept until the next operation of the lane
/// is complete, because a worker without the result may have to be given it.
struct Payload {
  Buffer data;  ///< in and out; allgather: all blocks in rank order;
                ///< reduce_scatter: this rank's part only
  /// Allreduce: tensors besides those in `data`.
  std::vector<DirectTensor> direct;
  /// Where the inputs of `direct` are kept that are overwritten before the result is whole. Lent
  /// for one attempt; not null if `direct` has any.
  Buffer* undo = nullptr;
  /// Allreduce, broadcast, allgather, reduce_scatter: all tensors, where some lie on a device;
  /// there are none in `data` and `direct` then. Only for backends of modules that work on devices.
  /// Lent for one attempt.
  DeviceTensors* on_device = nullptr;
  /// Their result, where the backend has left it on the device. Null: it is in `data` and `direct`.
  std::shared_ptr<DeviceResult> device_result;
  /// kTransfer, of a donor: where the sections' bytes lie instead of in `data`, which is empty
  /// then. Not owned: they must stay as they are until the next operation of the lane is complete.
  std::vector<std::span<std::byte>> elsewhere;
  std::vector<std::uint64_t> counts;  ///< allgather: elements per rank; reduce_scatter: likewise
  bool in_hand = false;  ///< reduce_scatter that failed: this rank's part is complete all the same

  /// Forgets all but the memory of `data`.
  void clear();
  /// Copies into `data`, behind what it has, the results in `direct` and what lies `elsewhere`,
  /// each aligned as sections are. Nothing but `data` is needed afterwards.
  void gather();
  /// Brings a result that lies on a device to `data`, gathered. kUnavailable: CUDA has failed.
  Status bring_to_host();
};

}  // namespace elastic::collectives
