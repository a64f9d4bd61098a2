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
/// Bytes from the start of the data to the end of the last section.
inline std::size_t extent(const std::vector<Section>& sections) {
  return sections.empty() ? 0 : sections.back().offset + bytes_of(sections.back());
}
inline constexpr std::size_t kSectionAlignment = 64;
constexpr std::size_t aligned(std::size_t offset) {
  return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

/// A tensor that is too large to be copied into the data of a call. The backend writes the result
/// to `output`, for an average already divided; `input` may be the same memory. The caller owns it.
struct DirectTensor {
  DType dtype = DType::kU8;
  std::size_t count = 0;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;

  std::size_t bytes() const { return count * size_of(dtype); }
};

/// The data of one collective: first its input, then its result. The lane keeps it until its next
/// operation is complete, because it may have to hand the result over to a worker that lacks it.
struct Payload {
  Buffer data;  ///< input and result; the result of an allgather is all blocks in rank order,
                ///< that of a reduce_scatter this rank's part only
  /// Allreduce: tensors besides those in `data`.
  std::vector<DirectTensor> direct;
  /// Takes a copy of each input of `direct` that is overwritten before the result is whole. Lent
  /// for one attempt; not null if `direct` has any tensor.
  Buffer* undo = nullptr;
  /// Allreduce, broadcast, allgather, reduce_scatter: all tensors of the call, if some are on a
  /// device; `data` and `direct` then have none. Only for backends of modules that work on devices
  /// (BackendModule::works_on_devices). Lent for one attempt.
  DeviceTensors* on_device = nullptr;
  /// Their result, if the backend has left it on the device. Null: it is in `data` and `direct`.
  std::shared_ptr<DeviceResult> device_result;
  /// kTransfer, on a donor: the memory of the sections, in place of `data`, which is then empty.
  /// The caller owns it and must not change it until the next operation of the lane is complete.
  std::vector<std::span<std::byte>> elsewhere;
  std::vector<std::uint64_t> counts;  ///< allgather and reduce_scatter: elements of each rank
  bool in_hand = false;  ///< a failed reduce_scatter has completed this rank's part nevertheless

  /// Empties the payload, but keeps the memory of `data`.
  void clear();
  /// Makes the gathered layout: appends the results in `direct` and the memory in `elsewhere` to
  /// `data`, each aligned like a section. Afterwards the payload is in `data` alone.
  void gather();
  /// Copies a result on a device to `data`, in gathered layout. kUnavailable: CUDA has failed.
  Status bring_to_host();
};

}  // namespace elastic::collectives
