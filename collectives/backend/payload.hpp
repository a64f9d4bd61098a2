#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
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
struct ZeroCopyTensor {
  DType dtype = DType::kU8;
  std::size_t count = 0;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;

  std::size_t bytes() const { return count * size_of(dtype); }
};

/// The forms of a payload. The comment of each says what Payload::data holds; the form holds
/// everything else.

/// Payload::data has everything: the input, or the result.
struct Packed {};

/// An allreduce of tensors of which some stay in the caller's memory. Payload::data has the others.
/// The list belongs to the operation, and is valid until the operation unpacks the result. A list
/// of the payload's own would cost an allocation in each call.
struct ZeroCopyTensors {
  std::span<const ZeroCopyTensor> tensors;
};

/// The result of a collective whose ranks give or get blocks. Payload::data has all blocks of an
/// allgather and a gather in rank order; of an alltoall, a scatter, a reduce_scatter and a scan
/// either what this rank gets (`of_this_rank`), or what all ranks gave, reduced in a
/// reduce_scatter.
struct Blocks {
  std::vector<std::uint64_t> counts;  ///< elements of each rank; none where there are no blocks. In
                                      ///< an alltoall's data of all ranks one for each pair of
                                      ///< ranks, those that rank 0 gave first
  bool own_block_complete = false;  ///< of a call that failed: Payload::data has this rank's result
                                    ///< all the same
  bool of_this_rank = false;        ///< no other rank has this result or can use it
  bool delivered = false;           ///< the data is in Lent::room in place of Payload::data
};

/// The end of a group's call on this rank, which no other rank can use: each has its own, and
/// ranks outside of the group have none.
struct GroupResult {
  Status error;           ///< of all ranks of the group; ok: the payload has the result
  bool complete = false;  ///< of a call that failed: this rank's part is done all the same
};

/// A state on its way from a donor (Kind::kTransfer): the memory of each section. Payload::data is
/// empty. The caller owns the memory and must not change it until the next operation of the lane is
/// complete.
struct StateSections {
  std::vector<std::span<std::byte>> sections;
};

/// The input, if some tensor is on a device: all tensors of the call. Payload::data is unspecified.
/// Only for backends of modules that work on devices (BackendModule::works_on_devices). Lent for
/// one attempt.
struct OnDevice {
  DeviceTensors* tensors = nullptr;
};

/// This rank's result, which the backend has left on the device. A backend completes an operation
/// when all ranks have theirs, so no other rank needs it. Payload::data is unspecified.
struct ResultOnDevice {
  std::shared_ptr<DeviceResult> result;  ///< null: it was delivered
  /// As Blocks::counts. A grouped allgather has the elements of each rank's block of each tensor,
  /// those of rank 0 first.
  std::vector<std::uint64_t> counts = {};
  bool complete = false;  ///< of a call that failed: the result is there all the same
};

/// The caller's memory for large tensors, which saves the copies to and from Payload::data: the
/// input in its place, and room for the result, apart from the input. Valid until the operation is
/// delivered, or attempted again. The backend only reads the input, and writes to the room only a
/// result that no other rank will ask this one for.
struct Lent {
  std::span<const std::byte> input;
  std::span<std::byte> room;
};
/// Bytes of a block from which its memory is lent.
inline constexpr std::size_t kLentFrom = 64 * 1024;

/// The data of one collective: first its input, then its result. The lane keeps it until its next
/// operation is complete, because it may have to hand the result over to a worker that lacks it.
///
/// A collective whose data has another form adds an alternative here; the compiler then asks for
/// its part in `make_contiguous`.
struct Payload {
  Buffer data;  ///< its memory is kept from one operation to the next
  /// Takes a copy of each input of ZeroCopyTensors that is overwritten before the result is whole.
  /// Lent for one attempt; not null if the operation has such tensors.
  Buffer* undo = nullptr;
  Lent lent;  ///< of any collective but an allreduce; empty: nothing is lent
  std::variant<Packed, ZeroCopyTensors, Blocks, StateSections, OnDevice, ResultOnDevice> form;
  std::optional<GroupResult> group;  ///< of a group's call, which has been performed

  /// The input as it was packed or lent.
  std::span<const std::byte> input() const {
    return lent.input.empty() ? data.bytes() : lent.input;
  }
  /// The data of the result, here or in the room that was lent.
  std::span<const std::byte> result() const;

  // The content of `form`; empty, null or false if it has another.
  std::span<const ZeroCopyTensor> zero_copy() const;
  std::span<const std::uint64_t> counts() const;  ///< also of a result on a device
  bool own_block_complete() const;  ///< also of a result on a device, and of a group's call
  bool of_this_rank() const;        ///< as every result on a device
  /// Whether the result is of no use to other ranks.
  bool stays_here() const { return group.has_value() || of_this_rank(); }
  DeviceTensors* on_device() const;
  std::shared_ptr<DeviceResult> device_result() const;

  void swap(Payload& other) noexcept;
  /// Empties the payload, but keeps the memory of `data`.
  void clear();
  /// Makes the contiguous layout: appends the results of ZeroCopyTensors, or the memory of
  /// StateSections, to `data`, each aligned like a section. Such a payload is Packed afterwards;
  /// other forms stay as they are.
  void make_contiguous();
  /// The result was delivered: forgets the caller's tensors, which may change from now on, and a
  /// result on a device.
  void release_tensors();
};

}  // namespace elastic::collectives
