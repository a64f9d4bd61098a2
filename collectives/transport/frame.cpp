#include "collectives/transport/frame.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/backend_names.hpp"
#include "base/dtype_names.hpp"
#include "base/gathered_calls.hpp"
#include "base/little_endian.hpp"
#include "base/reduce_ops.hpp"

namespace elastic::transport {

namespace {

using little_endian::get;
using little_endian::put;

// magic 4, kind 1, phase 1, zero 2, generation 8, position 8, message 4, length 4, offset 8,
// fingerprint 16, checksum of the payload 4, checksum of all before 4
constexpr std::size_t kChecksumAt = FrameHeader::kBytes - 4;

std::uint32_t low_half(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash);
}

std::uint32_t not_none(std::uint32_t checksum) {
  return checksum == 0 ? 1 : checksum;
}

std::string named(std::span<const char* const> names, std::size_t index) {
  return index < names.size() ? names[index] : std::to_string(index);
}

constexpr auto kFirstOwnCall = static_cast<std::size_t>(OwnCall::kStateSize);
constexpr auto kLastOwnCall = static_cast<std::size_t>(OwnCall::kStepTimes);

bool is_own_call(std::size_t number) {
  return number >= kFirstOwnCall && number <= kLastOwnCall;
}

// The numbers of collectives::Kind, which this folder does not know.
constexpr std::size_t kAllreduce = 1;
constexpr std::size_t kBroadcast = 2;
constexpr std::size_t kAllgather = 3;
constexpr std::size_t kReduceScatter = 4;
constexpr std::size_t kBarrier = 5;
constexpr std::size_t kStateTransfer = 6;
constexpr std::size_t kAlltoall = 11;
constexpr std::size_t kGather = 12;
constexpr std::size_t kScatter = 13;
constexpr std::size_t kReduce = 14;
constexpr std::size_t kScan = 15;

bool reduces(std::size_t kind) {
  return kind == kAllreduce || kind == kReduceScatter || kind == kReduce || kind == kScan;
}
bool has_root(std::size_t kind) {
  return kind == kBroadcast || kind == kGather || kind == kScatter || kind == kReduce;
}
bool is_grouped(const Fingerprint& fingerprint) {
  const std::size_t kind = fingerprint.call();
  return (kind == kAllgather || kind == kReduceScatter) &&
         (fingerprint.redop & Fingerprint::kGrouped) != 0;
}
/// Whether the fingerprint has no number of elements.
bool may_differ_in_count(const Fingerprint& fingerprint) {
  const std::size_t kind = fingerprint.call();
  return kind == kAllgather || kind == kGather || kind == kScatter ||
         (kind == kAlltoall && (fingerprint.redop & Fingerprint::kRagged) != 0);
}

static_assert(kBackendNames.size() <= 1U << (8 - Fingerprint::kKindBits));

std::string performer_name(std::size_t number) {
  return number < kBackendNames.size() ? std::string(kBackendNames[number])
                                       : std::to_string(number);
}

/// \returns the call that is an allgather of such rows on the way; empty for an allgather itself.
std::string_view gathered_call(std::uint32_t row_hash) {
  for (const GatheredCall* const call : {&kLocationCall, &kSparseCall, &kSparseRowsCall}) {
    if (row_hash == low_half(hash_of(std::as_bytes(std::span(call->row))))) return call->name;
  }
  return {};
}

std::string describe_root(std::uint32_t detail) {
  if (detail < Fingerprint::kRootWorker) return "rank " + std::to_string(detail);
  if ((detail & Fingerprint::kNoMember) != 0) return "a worker that is no member";
  return "the worker of rank " + std::to_string(detail & ~Fingerprint::kRootWorker);
}

}  // namespace

std::string describe_kind(std::uint8_t kind) {
  static constexpr std::array kKinds = {"call 0",
                                        "allreduce",
                                        "broadcast",
                                        "allgather",
                                        "reduce_scatter",
                                        "barrier",
                                        "state transfer",
                                        "mismatch",
                                        "elastic::run, which synchronises the state",
                                        "the comparison of the state in elastic::run",
                                        "the comparison of step times in State::commit",
                                        "alltoall",
                                        "gather",
                                        "scatter",
                                        "reduce",
                                        "scan"};
  static_assert(kKinds.size() == Fingerprint::kKindMask + 1);
  return kKinds[kind & Fingerprint::kKindMask];
}

std::string describe_kind(const Fingerprint& fingerprint) {
  const std::size_t kind = fingerprint.call();
  if (kind == kScan && fingerprint.detail == Fingerprint::kExclusive) return "exscan";
  if (is_grouped(fingerprint)) return "grouped_" + describe_kind(fingerprint.kind);
  if (kind == kAllgather && !gathered_call(fingerprint.detail).empty()) {
    return std::string(gathered_call(fingerprint.detail));
  }
  return describe_kind(fingerprint.kind);
}

bool is_scaled(const Fingerprint& fingerprint) {
  return fingerprint.call() == kAllreduce && fingerprint.tensors == 1 && fingerprint.detail != 0 &&
         (fingerprint.redop & Fingerprint::kCast) == 0;
}

bool waits_for_state(std::uint8_t kind) {
  const std::size_t number = kind & Fingerprint::kKindMask;
  return number == kStateTransfer || number == static_cast<std::size_t>(OwnCall::kStateHashes);
}

std::string describe(const Fingerprint& fingerprint) {
  constexpr std::uint8_t kManyTensors = 255;

  const std::size_t kind = fingerprint.kind & Fingerprint::kKindMask;
  const std::size_t performer = fingerprint.kind >> Fingerprint::kKindBits;
  const std::string by = performer == 0 ? "" : ", by " + performer_name(performer);
  std::string text = describe_kind(fingerprint);
  if (is_own_call(kind)) return text + by;
  if (kind == kBarrier && fingerprint.detail != 0) {  // in which members meet without the root
    return ((fingerprint.detail & Fingerprint::kRootWorker) != 0
                ? "a call whose root is " + describe_root(fingerprint.detail)
                : "a call whose root is gone") +
           by;
  }
  if (kind == kBarrier) return text + by;
  const bool grouped = is_grouped(fingerprint);
  if (kind == kAllgather && !grouped && !gathered_call(fingerprint.detail).empty()) {
    return text + by;
  }
  if (fingerprint.tensors > 1 || grouped) {
    text += " of " + std::to_string(fingerprint.tensors) +
            (fingerprint.tensors == kManyTensors ? " or more tensors"
             : fingerprint.tensors == 1          ? " tensor"
                                                 : " tensors");
    if (!may_differ_in_count(fingerprint)) {
      text += ", " + std::to_string(fingerprint.count) + " elements";
    }
  } else if (may_differ_in_count(fingerprint)) {
    text += " of " + named(kDTypeNames, fingerprint.dtype);
  } else {
    text +=
        " of " + std::to_string(fingerprint.count) + " " + named(kDTypeNames, fingerprint.dtype);
  }
  if (kind == kAlltoall && !may_differ_in_count(fingerprint)) text += " for each rank";
  if (has_root(kind)) {
    text += (kind == kBroadcast || kind == kScatter ? " from " : " to ") +
            describe_root(fingerprint.detail);
  }
  constexpr unsigned kCast = Fingerprint::kCast;
  constexpr unsigned kMarks = kCast | Fingerprint::kGrouped;
  if (reduces(kind)) text += ", " + named(kReduceOpNames, fingerprint.redop & ~kMarks);
  if (reduces(kind) && (fingerprint.redop & kCast) != 0) text += ", cast";
  if (is_scaled(fingerprint)) text += ", scaled";
  return text + by;
}

Fingerprint performed_by(const std::string& name, Fingerprint fingerprint) {
  const auto found = std::find(kBackendNames.begin(), kBackendNames.end(), name);
  const auto index = static_cast<unsigned>(found - kBackendNames.begin());
  fingerprint.kind = static_cast<std::uint8_t>(fingerprint.kind | index << Fingerprint::kKindBits);
  return fingerprint;
}

Status mismatch(const Fingerprint& mine, int peer, const Fingerprint& theirs) {
  return Status(Code::kMismatch, "this rank called " + describe(mine) + ", rank " +
                                     std::to_string(peer) + " called " + describe(theirs));
}

std::uint32_t PayloadChecksum::value() const {
  return not_none(low_half(hash_.value()));
}

std::uint32_t checksum(std::span<const std::byte> payload) {
  return not_none(low_half(hash_of(payload)));
}

void encode(const FrameHeader& header, std::span<std::byte, FrameHeader::kBytes> out) {
  put(out, 0, FrameHeader::kMagic);
  put(out, 4, static_cast<std::uint8_t>(header.kind));
  put(out, 5, header.tag.phase);
  put(out, 6, std::uint16_t{0});
  put(out, 8, header.tag.generation);
  put(out, 16, header.tag.position);
  put(out, 24, header.message);
  put(out, 28, header.length);
  put(out, 32, header.offset);
  put(out, 40, header.fingerprint.kind);
  put(out, 41, header.fingerprint.dtype);
  put(out, 42, header.fingerprint.redop);
  put(out, 43, header.fingerprint.tensors);
  put(out, 44, header.fingerprint.detail);
  put(out, 48, header.fingerprint.count);
  put(out, 56, header.payload_checksum);
  put(out, kChecksumAt, low_half(hash_of(out.first(kChecksumAt))));
}

Result<FrameHeader> decode(std::span<const std::byte, FrameHeader::kBytes> in) {
  if (get<std::uint32_t>(in, 0) != FrameHeader::kMagic) {
    return Status(Code::kProtocol, "bytes that are no frame of elastic");
  }
  if (get<std::uint32_t>(in, kChecksumAt) != low_half(hash_of(in.first(kChecksumAt)))) {
    return Status(Code::kProtocol, "a frame header was damaged on the way: its checksum is wrong");
  }
  FrameHeader header;
  const auto kind = get<std::uint8_t>(in, 4);
  if (kind != static_cast<std::uint8_t>(FrameKind::kData) &&
      kind != static_cast<std::uint8_t>(FrameKind::kNote)) {
    return Status(Code::kProtocol, "a frame of unknown kind " + std::to_string(kind));
  }
  header.kind = static_cast<FrameKind>(kind);
  header.tag.phase = get<std::uint8_t>(in, 5);
  header.tag.generation = get<std::uint64_t>(in, 8);
  header.tag.position = get<std::uint64_t>(in, 16);
  header.message = get<std::uint32_t>(in, 24);
  header.length = get<std::uint32_t>(in, 28);
  header.offset = get<std::uint64_t>(in, 32);
  header.fingerprint.kind = get<std::uint8_t>(in, 40);
  header.fingerprint.dtype = get<std::uint8_t>(in, 41);
  header.fingerprint.redop = get<std::uint8_t>(in, 42);
  header.fingerprint.tensors = get<std::uint8_t>(in, 43);
  header.fingerprint.detail = get<std::uint32_t>(in, 44);
  header.fingerprint.count = get<std::uint64_t>(in, 48);
  header.payload_checksum = get<std::uint32_t>(in, 56);
  if (header.length > FrameHeader::kMaxPayload) {
    return Status(Code::kProtocol, "a frame of " + std::to_string(header.length) +
                                       " bytes; at most " +
                                       std::to_string(FrameHeader::kMaxPayload) + " are allowed");
  }
  return header;
}

}  // namespace elastic::transport
