#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/buffer.hpp"
#include "collectives/transport/frame.hpp"
#include "elastic/types.hpp"

namespace elastic::collectives {

enum class Kind : std::uint8_t {
  kAllreduce = 1,
  kBroadcast,
  kAllgather,
  kReduceScatter,
  kBarrier,
  kTransfer,  ///< state from the workers that have it to those that do not
  kMismatch,  ///< ranks submitted one name with different shapes: ends in an error on all of them
};

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

/// One collective as a backend sees it.
struct Call {
  Kind kind = Kind::kBarrier;
  ReduceOp redop =
      ReduceOp::kSum;  ///< kAverage is summed by the backend, divided by the caller of it
  int root = 0;        ///< kBroadcast: rank in this backend's view
  std::vector<Section> sections;  ///< allgather: this rank's own block, which may differ in count
  std::vector<int> donors;        ///< kTransfer: ranks that have the data
  std::vector<int> receivers;     ///< kTransfer: ranks that lack it
  std::string error;              ///< kMismatch: what this rank has to say
  transport::Fingerprint fingerprint;
};

/// What a collective works on, and afterwards its result. Kept until the next operation of the lane
/// is complete, because a worker without the result may have to be given it.
struct Payload {
  Buffer data;  ///< in and out; allgather: all blocks in rank order;
                ///< reduce_scatter: this rank's part only
  /// kTransfer, of a donor: where the sections' bytes lie instead of in `data`, which is empty
  /// then. Not owned: they must stay as they are until the next operation of the lane is complete.
  std::vector<std::span<std::byte>> elsewhere;
  std::vector<std::uint64_t> counts;  ///< allgather: elements per rank; reduce_scatter: likewise
  bool in_hand = false;  ///< reduce_scatter that failed: this rank's part is complete all the same
};

/// Bytes that an allgather of so many elements from each rank comes to; kProtocol where no machine
/// has as much: counts come over the wire.
inline Result<std::size_t> gathered_bytes(const std::vector<std::uint64_t>& counts,
                                          std::size_t element) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) {
    if (count > kMost / element || total > kMost) {
      return Status(Code::kProtocol, "an allgather of impossible size");
    }
    total += count * element;
  }
  return static_cast<std::size_t>(total);
}

/// Performs whole collectives on one view. Made anew for every view; one thread at a time, but for
/// `abort`.
///
/// Contract, the same for every backend (tests/contract/backend_contract.hpp):
/// - results are bit-identical on all ranks;
/// - no rank returns success from position p+1 before every rank has returned from position p;
/// - a mismatch of fingerprints ends on every rank with kMismatch and a message that names two
/// ranks
///   and what each called; the backend stays usable;
/// - after kPeerLost or kAborted the backend is good for nothing but destruction, and `payload` is
///   garbage, unless it says `in_hand`;
/// - when success is returned, nothing more needs to be done for the other ranks to finish.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual Status run(std::uint64_t position, const Call& call, Payload& payload) = 0;

  /// Hands results of a committed operation from `givers[i]` to `takers[i]`. A rank that is neither
  /// returns at once. `parcel` is sent by a giver and filled in by a taker.
  struct Handover {
    std::vector<int> givers;
    std::vector<int> takers;
  };
  struct Parcel {
    std::string error;  ///< the operation's error where it ended in one (a mismatch)
    Payload payload;
  };
  virtual Status hand_over(std::uint64_t position, const Handover& handover, Parcel& parcel) = 0;

  /// Makes `run` and `hand_over`, now and later, return kAborted soon. Any thread.
  virtual void abort() noexcept = 0;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* name() const = 0;
};

}  // namespace elastic::collectives
