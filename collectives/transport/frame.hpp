#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/hash.hpp"
#include "base/status.hpp"

namespace elastic::transport {

/// The call of a rank, small enough to travel in every frame. Two ranks with different fingerprints
/// for the same position have made different calls.
struct Fingerprint {
  std::uint8_t kind = 0;     ///< collectives::Kind or OwnCall; above kKindBits the backend
  std::uint8_t dtype = 0;    ///< elastic::DType of the first tensor
  std::uint8_t redop = 0;    ///< elastic::ReduceOp; with kCast where tensors travel as halves; of
                             ///< an alltoall kRagged or 0; with kGrouped
  std::uint8_t tensors = 1;  ///< number of tensors in the call, 255 for more
  std::uint32_t detail = 0;  ///< root; hash of a group's shapes, of factors, of the row of blocks;
                             ///< of a scan kExclusive or 0
  std::uint64_t count = 0;   ///< elements over all tensors, of an alltoall for each rank; 0 where
                             ///< ranks may differ; of a gather the hash of the row

  static constexpr unsigned kKindBits = 4;
  static constexpr unsigned kKindMask = (1U << kKindBits) - 1;
  static constexpr std::uint8_t kCast = 0x80;
  /// In `redop` of an alltoall: the blocks may have different sizes.
  static constexpr std::uint8_t kRagged = 0x40;
  /// In `redop` of a reduce_scatter and an allgather: of several tensors as one unit. `detail` is
  /// the hash of their shapes, of an allgather that of their dtypes.
  static constexpr std::uint8_t kGrouped = 0x20;
  /// In `detail` of a scan: without the rank's own contribution.
  static constexpr std::uint32_t kExclusive = 1;
  /// In `detail`: the root is named as a worker, whose rank in the view follows, or of whose id the
  /// other bits follow if it is no member.
  static constexpr std::uint32_t kRootWorker = 0x80000000;
  static constexpr std::uint32_t kNoMember = 0x40000000;
  static constexpr std::uint32_t root_worker(int rank) {
    return kRootWorker | static_cast<std::uint32_t>(rank);
  }
  static constexpr std::uint32_t lost_worker(std::uint64_t id) {
    return kRootWorker | kNoMember | static_cast<std::uint32_t>(id);
  }

  /// A collectives::Kind or an OwnCall.
  unsigned call() const { return kind & kKindMask; }

  bool operator==(const Fingerprint&) const = default;
};

/// The library's own calls: in a fingerprint in place of the kind, so that no call of a program
/// matches it, and an error says in words what happened.
enum class OwnCall : std::uint8_t {
  kStateSize = 8,  ///< with it a synchronisation begins
  kStateHashes,
  kStepTimes,
};
inline bool is_own_call(const Fingerprint& fingerprint, OwnCall call) {
  return fingerprint.call() == static_cast<unsigned>(call);
}

/// `fingerprint` of a call that the backend `name` performs: ranks with other backends cannot do it
/// together.
Fingerprint performed_by(const std::string& name, Fingerprint fingerprint);

/// Whether it is an allreduce of one tensor with factors (Scale); then `detail` is their hash.
bool is_scaled(const Fingerprint& fingerprint);

/// Whether members may wait in a call of this kind for as long as another one saves or loads an
/// object of the state.
bool waits_for_state(std::uint8_t kind);

/// "allreduce", of what Fingerprint::kind says. Never throws; unknown values print as numbers.
std::string describe_kind(std::uint8_t kind);
/// The same of the call that it is on the way of: "exscan", "minloc or maxloc".
std::string describe_kind(const Fingerprint& fingerprint);

/// "allreduce of 1024 f32, sum": for error messages. Never throws; unknown values print as numbers.
std::string describe(const Fingerprint& fingerprint);

/// The error of a rank that finds another call of `peer` at the same position.
Status mismatch(const Fingerprint& mine, int peer, const Fingerprint& theirs);

enum class FrameKind : std::uint8_t {
  kData = 1,  ///< part of a message of an operation
  kNote = 2,  ///< out-of-band message between coordinators, not tied to an operation
};

/// Names an operation to both ends of a link. Ordered: generation, then position, then phase.
/// Frames for an earlier tag are dropped, frames for a later one stay unread until `Link::begin`.
struct OpTag {
  std::uint64_t generation = 0;  ///< of the view. Fences off whatever an older view still sends
  std::uint64_t position = 0;    ///< of the operation in its lane, counted over the whole job
  std::uint8_t phase = 0;  ///< kNormal, kAbortOperation once a mismatch has been found, or later

  /// The exchanges before the operation itself: the hand-over of the result before it, the exchange
  /// of capabilities, and a coordinator's wait for notes before the first operation.
  static constexpr std::uint8_t kBeforeOperation = 0;
  static constexpr std::uint8_t kNormal = 1;
  static constexpr std::uint8_t kAbortOperation = 2;
  /// From here on: further exchanges of the same operation, after the ranks have met in kNormal
  /// with the same call. Nothing is compared any more.
  static constexpr std::uint8_t kLater = 3;
  /// All ranks meet at the end of an operation of some of them.
  static constexpr std::uint8_t kGroupEnd = 254;
  /// After everything else of an operation that ended in an error: see Backend::settle_error.
  static constexpr std::uint8_t kSettled = 255;

  auto operator<=>(const OpTag&) const = default;
};

/// In front of every payload, 64 bytes, little-endian on the wire.
struct FrameHeader {
  static constexpr std::size_t kBytes = 64;
  static constexpr std::uint32_t kMagic = 0x324c4645;  // "EFL2"
  static constexpr std::uint32_t kMaxPayload = 1U << 26;

  FrameKind kind = FrameKind::kData;
  OpTag tag;                  ///< for notes only the generation counts
  std::uint32_t message = 0;  ///< index of the message on this link and direction within the op
  std::uint32_t length = 0;   ///< payload bytes that follow
  std::uint64_t offset = 0;   ///< of the payload within its message
  Fingerprint fingerprint;
  std::uint32_t payload_checksum = 0;  ///< 0: none
};

/// A checksum of bytes that arrive in pieces.
class PayloadChecksum {
 public:
  void reset() { hash_.reset(); }
  void add(std::span<const std::byte> bytes) { hash_.add(bytes); }
  /// Equals `checksum` of all that was added since `reset`.
  std::uint32_t value() const;

 private:
  PiecewiseHash hash_;
};

/// The value of FrameHeader::payload_checksum for `payload`: never 0.
std::uint32_t checksum(std::span<const std::byte> payload);

/// Writes `header` into the first FrameHeader::kBytes of `out`, with a checksum over the header.
void encode(const FrameHeader& header, std::span<std::byte, FrameHeader::kBytes> out);

/// Reads and checks a header: magic, checksum, kind, length bound. kProtocol otherwise.
Result<FrameHeader> decode(std::span<const std::byte, FrameHeader::kBytes> in);

}  // namespace elastic::transport
