#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/payload.hpp"
#include "collectives/plan/allreduce_way.hpp"
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
  kMismatch,  ///< ranks submitted one name with different shapes, or this rank cannot make the call
              ///< that it was asked for: ends in an error on all of them
  // 8 to 10 are transport::OwnCall.
  kAlltoall = 11,
  kGather,
  kScatter,
  kReduce,
  kScan,
};
static_assert(static_cast<unsigned>(Kind::kMismatch) <
                      static_cast<unsigned>(transport::OwnCall::kStateSize) &&
                  static_cast<unsigned>(Kind::kAlltoall) >
                      static_cast<unsigned>(transport::OwnCall::kStepTimes) &&
                  static_cast<unsigned>(Kind::kScan) <= transport::Fingerprint::kKindMask,
              "numbers of calls travel, and belong to one kind each");

/// The kinds that only the native backend performs, beside those that move no tensors and those of
/// groups. All of them
/// have one section.
constexpr bool is_personal(Kind kind) {
  return kind >= Kind::kAlltoall;
}

/// One collective as a backend sees it.
struct Call {
  Kind kind = Kind::kBarrier;
  ReduceOp redop = ReduceOp::kSum;  ///< kAverage: the backend sums Payload::data, and the caller
                                    ///< divides
  int root = 0;                     ///< of the kinds that have one: rank in this backend's view
  std::vector<Section> sections;  ///< allgather, gather: this rank's block; alltoall, scatter: all
                                  ///< blocks that this rank gives; ranks may differ in count
  std::vector<std::uint64_t>
      counts;              ///< kAlltoall, and kScatter on the root: elements for each rank
  bool ragged = false;     ///< kAlltoall: other ranks may have other counts
  bool exclusive = false;  ///< kScan: without this rank's own contribution
  /// For the call of a group: the ranks that perform it, ascending; the root, the counts and all
  /// else that names ranks number these from 0. The other ranks meet them when the call is over.
  /// Empty: all ranks perform it.
  std::vector<int> group;
  /// For the call of a group: the fingerprint that its ranks compare among themselves.
  /// `fingerprint` is the same on all ranks.
  transport::Fingerprint group_fingerprint;
  /// kReduceScatter, kAllgather: of several tensors as one unit, each as this rank gave it, without
  /// an offset. `sections` has the one tensor that they make up (plan::GroupSlots,
  /// plan::GroupBlock).
  std::vector<Section> grouped;
  std::vector<int> donors;     ///< kTransfer: ranks that have the data
  std::vector<int> receivers;  ///< kTransfer: ranks that lack it
  std::string error;           ///< this rank's text for the error if the calls do not match;
                               ///< kMismatch: the text of the error
  transport::Fingerprint fingerprint;
  /// Phase of the native backend's frames. OpTag::kLater or more: the ranks have already met in
  /// this call at this position, and have compared their calls.
  std::uint8_t phase = transport::OpTag::kNormal;
};

/// A collective of one small tensor, without the cost of a Call. Blocks of an alltoall and a
/// scatter are equal.
struct SmallCall {
  DType dtype = DType::kU8;
  ReduceOp redop = ReduceOp::kSum;     ///< kAverage is summed
  std::span<const std::byte> input;    ///< of a broadcast and a scatter: only the root's counts
  transport::Fingerprint fingerprint;  ///< that of the same call to `run`
  Kind kind = Kind::kAllreduce;
  int root = 0;  ///< of the kinds that have one
};

/// \returns the bytes of blocks of `counts[rank]` elements for or from each rank. The counts come
/// over the wire: kInvalidArgument, the same on all ranks, if they add up to more than 2^40 bytes.
inline Result<std::size_t> gathered_bytes(const std::string& call,
                                          const std::vector<std::uint64_t>& counts,
                                          std::size_t element) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  std::uint64_t total = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] <= kMost / element) {
      total += counts[rank] * element;
      if (total <= kMost) continue;
    }
    return Status(Code::kInvalidArgument,
                  call + ": the block of rank " + std::to_string(rank) + " has " +
                      std::to_string(counts[rank]) + " elements of " + std::to_string(element) +
                      " bytes; with those of the ranks before, that is more than the 2^40 bytes "
                      "that one call takes");
  }
  return static_cast<std::size_t>(total);
}

/// Whether every rank has the same error as the result of the operation.
inline bool is_shared_error(const Status& status) {
  return status.code() == Code::kMismatch || status.code() == Code::kInvalidArgument;
}

/// Performs whole collectives on one view. Every view has a new backend. One thread at a time may
/// call it; any thread may call `abort`.
///
/// Contract, the same for every backend (tests/contract/backend_contract.hpp):
/// - results are bit-identical on all ranks;
/// - no rank returns success from position p+1 before every rank has returned from position p;
/// - a mismatch of fingerprints ends on every rank with kMismatch and a message that names two
///   ranks and the call of each; the backend stays usable;
/// - kMismatch and kInvalidArgument are shared errors: every rank returns the same error, and this
///   error is the operation's result;
/// - after kPeerLost or kAborted the backend can only be destroyed, and `payload` is garbage unless
///   Payload::own_block_complete;
/// - after kUnavailable this worker cannot continue in any view: it has to leave the job;
/// - whenever `run` fails, the inputs of zero-copy tensors and of device tensors are unchanged;
/// - after success this rank has nothing left to do for the other ranks to finish, but it must not
///   change its zero-copy tensors until `settle` has returned.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Exchanges the settings that the view's first operation, `position`, needs. `run` does so
  /// itself. A backend that runs some operations on a native backend calls the native backend's
  /// `prepare` before its own first operation.
  virtual Status prepare(std::uint64_t /*position*/) { return {}; }

  /// For a backend that performs an operation on the view's links itself, after `prepare`: tells
  /// the call to ranks that wait for an eager message of it, and make another call maybe.
  virtual void announce(std::uint64_t /*position*/, const transport::Fingerprint& /*call*/) {}

  /// Performs `call` as operation `position` of the lane. `payload` has the input, then the result.
  virtual Status run(std::uint64_t position, const Call& call, Payload& payload) = 0;

  /// An operation on tensors on devices that follows another one on the lane.
  struct Coming {
    Call call;
    DeviceTensors* tensors = nullptr;  ///< as its payload will have them; to be read at once
  };
  /// Nothing: it is not known yet.
  using Upcoming = std::function<std::optional<Coming>()>;
  /// Before `run`, for the time of that call: which operation follows. A backend that waits for a
  /// device may ask meanwhile, and begin it early. The lane runs nothing else before it, and calls
  /// `end_early` if it cannot run it.
  virtual void expect(Upcoming /*upcoming*/) {}
  /// Ends an operation that has begun early and will not be run. Fails like `run` with
  /// kUnavailable.
  virtual Status end_early() { return {}; }

  /// The sizes for which `run` takes ZeroCopyTensors (plan::choose_way). The same on all ranks.
  virtual plan::AllreduceLimits allreduce_limits() const { return {}; }
  /// Whether `run_small` takes the call.
  virtual bool takes(const SmallCall& /*call*/) const { return false; }
  /// Faster than `run`. Performs the same collective as `run` of the same call, under the same
  /// contract; other ranks may call either. `payload` is empty, and gets the result in the form
  /// that `run` gives it. It does not overlap the input.
  virtual Status run_small(std::uint64_t /*position*/, const SmallCall& /*call*/,
                           Payload& /*payload*/) {
    return Status(Code::kInternal, "this backend knows no small calls");
  }

  /// After a successful `run` with zero-copy tensors: waits until `run` has succeeded on every
  /// rank, so that no rank can need this rank's result any more. Fails like `run`, but the result
  /// stays. Afterwards the caller may change its tensors: a rank that still reads them discards
  /// what it read.
  virtual Status settle() { return {}; }

  /// After a `run` or `run_small` that ended in a shared error, or after such an error was handed
  /// over: waits until each of `ranks`, this rank included, has called it for the same position, so
  /// that no rank of the view can replay the operation. Fails like `run`.
  virtual Status settle_error(std::uint64_t /*position*/, const std::vector<int>& /*ranks*/) {
    return {};
  }

  /// The ranks in a `hand_over`: the holder `senders[i]` sends the result of a committed operation
  /// to the taker `takers[i]`. A holder may serve several takers, or none.
  struct HandoverPairs {
    std::vector<int> senders;
    std::vector<int> takers;
  };
  struct Parcel {
    transport::Fingerprint fingerprint;  ///< of the operation, as the holder called it
    std::string error;                   ///< the operation's error if it ended in one (a mismatch)
    Payload payload;
  };
  /// A holder sends `parcel`, a taker receives into it, and any other rank returns at once.
  virtual Status hand_over(std::uint64_t position, const HandoverPairs& pairs, Parcel& parcel) = 0;

  /// Makes all present and later calls on this view return kAborted soon. Any thread.
  virtual void abort() noexcept = 0;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* name() const = 0;
};

}  // namespace elastic::collectives
