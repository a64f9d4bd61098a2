#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/payload.hpp"
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

/// One collective as a backend sees it.
struct Call {
  Kind kind = Kind::kBarrier;
  ReduceOp redop = ReduceOp::kSum;  ///< kAverage: what lies in Payload::data is summed, and divided
                                    ///< by the caller
  int root = 0;                     ///< kBroadcast: rank in this backend's view
  std::vector<Section> sections;    ///< allgather: this rank's own block, which may differ in count
  std::vector<int> donors;          ///< kTransfer: ranks that have the data
  std::vector<int> receivers;       ///< kTransfer: ranks that lack it
  std::string error;                ///< what this rank says if the ranks call different things;
                                    ///< kMismatch: what the error is to be
  transport::Fingerprint fingerprint;
  /// Of the native backend's frames. OpTag::kLater and more: the ranks have met with this call, and
  /// compared what they called, at this position already.
  std::uint8_t phase = transport::OpTag::kNormal;
};

/// An allreduce of one tensor that is not worth a Call.
struct SmallCall {
  DType dtype = DType::kU8;
  ReduceOp redop = ReduceOp::kSum;  ///< kAverage is summed
  std::span<const std::byte> input;
  transport::Fingerprint fingerprint;  ///< that of the same call to `run`
};

/// Bytes that an allgather of so many elements from each rank comes to. Counts come over the wire:
/// kInvalidArgument, the same on all ranks, where no machine has as much.
inline Result<std::size_t> gathered_bytes(const std::vector<std::uint64_t>& counts,
                                          std::size_t element) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  std::uint64_t total = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] <= kMost / element) {
      total += counts[rank] * element;
      if (total <= kMost) continue;
    }
    return Status(Code::kInvalidArgument,
                  "allgather: the block of rank " + std::to_string(rank) + " has " +
                      std::to_string(counts[rank]) + " elements of " + std::to_string(element) +
                      " bytes; with those of the ranks before, that is more than the 2^40 bytes "
                      "that an allgather takes");
  }
  return static_cast<std::size_t>(total);
}

/// Whether every rank has the same error as the result of the operation.
inline bool is_shared_error(const Status& status) {
  return status.code() == Code::kMismatch || status.code() == Code::kInvalidArgument;
}

/// Performs whole collectives on one view. Made anew for every view; one thread at a time, but for
/// `abort`.
///
/// Contract, the same for every backend (tests/contract/backend_contract.hpp):
/// - results are bit-identical on all ranks;
/// - no rank returns success from position p+1 before every rank has returned from position p;
/// - a mismatch of fingerprints ends on every rank with kMismatch and a message that names two
///   ranks and what each called; the backend stays usable;
/// - kMismatch and kInvalidArgument are shared errors: every rank returns the same error, and they
///   are the operation's result;
/// - after kPeerLost or kAborted the backend is good for nothing but destruction, and `payload` is
///   garbage, unless it says `in_hand`;
/// - after kUnavailable it cannot go on here, whatever the view: this worker has to leave the job;
/// - whenever `run` fails, the inputs of direct tensors, and of those on devices, are as they were;
/// - when success is returned, nothing more needs to be done for the other ranks to finish, but
/// that
///   direct tensors stay as they are until `settle` has returned.
class Backend {
 public:
  virtual ~Backend() = default;

  /// In front of the view's first operation, `position`: what the ranks have to tell each other.
  /// `run` does it itself; who leaves some operations to another backend calls it before others.
  virtual Status prepare(std::uint64_t /*position*/) { return {}; }

  virtual Status run(std::uint64_t position, const Call& call, Payload& payload) = 0;

  /// Whether `run_small` takes an allreduce of so many bytes: where it does it is faster than
  /// `run`.
  virtual bool takes_small(std::size_t /*bytes*/) const { return false; }
  /// The same collective as `run` of the same allreduce, with its contract; other ranks may call
  /// either. `result` is as long as the input and does not overlap it.
  virtual Status run_small(std::uint64_t /*position*/, const SmallCall& /*call*/,
                           std::byte* /*result*/) {
    return Status(Code::kInternal, "this backend knows no small calls");
  }

  /// From so many bytes on a tensor is to be given to `run` in Payload::direct. The same on all
  /// ranks.
  virtual std::size_t direct_bytes() const { return kNeverDirect; }
  static constexpr std::size_t kNeverDirect = std::numeric_limits<std::size_t>::max();
  /// After a `run` with direct tensors succeeded: succeeds when it has on every rank, so that
  /// nobody can need this rank's result any more. Fails like `run`, but the result stays. Either
  /// way nobody who still reads the tensors takes what he finds there from now on for data.
  virtual Status settle() { return {}; }

  /// After a `run` or `run_small` ended in a shared error, or such an error was handed over:
  /// succeeds when it has been called for the same position on each of `ranks`, this one among
  /// them, so that no rank of the view can replay the operation. Fails like `run`.
  virtual Status settle_error(std::uint64_t /*position*/, const std::vector<int>& /*ranks*/) {
    return {};
  }

  /// Hands results of a committed operation from `givers[i]` to `takers[i]`. A rank that is neither
  /// returns at once. `parcel` is sent by a giver and filled in by a taker.
  struct Handover {
    std::vector<int> givers;
    std::vector<int> takers;
  };
  struct Parcel {
    transport::Fingerprint fingerprint;  ///< of the operation, as the giver called it
    std::string error;  ///< the operation's error where it ended in one (a mismatch)
    Payload payload;
  };
  virtual Status hand_over(std::uint64_t position, const Handover& handover, Parcel& parcel) = 0;

  /// Makes all that works on the view, now and later, return kAborted soon. Any thread.
  virtual void abort() noexcept = 0;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* name() const = 0;
};

}  // namespace elastic::collectives
