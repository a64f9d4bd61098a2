// A peer on a data link that sends frames of all kinds, damaged ones, and anything: what a Link
// reads from such a stream. The input is a program of steps for that peer; see `Step`.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/transport/frame.hpp"
#include "collectives/transport/link.hpp"
#include "fuzz/data_frame_steps.hpp"
#include "fuzz/fuzz_input.hpp"
#include "tests/inproc_pair.hpp"

namespace elastic::transport {
namespace {

using fuzz::Step;

constexpr std::size_t kRingBytes = 64 * 1024;
/// Sizes of the messages that the link expects. Each has its own allocation, so that a write past
/// its end is detected.
constexpr std::array<std::size_t, 4> kMessages{0, 1, 64, 3000};
constexpr std::size_t kElement = 4;
constexpr Fingerprint kCall{1, 2, 0, 1, 0, 1024};
constexpr OpTag kTag{3, 10, OpTag::kNormal};

void add_bytes(std::byte* into, const std::byte* left, const std::byte* right,
               std::size_t elements) {
  for (std::size_t i = 0; i < elements * kElement; ++i) {
    into[i] = std::byte(std::to_integer<unsigned>(left[i]) + std::to_integer<unsigned>(right[i]));
  }
}

class Reader {
 public:
  Reader() {
    auto pair = make_inproc_pair(kRingBytes);
    fuzz::require(pair.ok(), "there is memory for a stream");
    peer_ = std::move(pair.value().second);
    std::vector<StreamPtr> streams;
    streams.push_back(std::move(pair.value().first));
    link_ = std::make_unique<Link>(std::move(streams), "peer");
    link_->set_peer(1);
    begin(kTag);
  }

  void begin(const OpTag& tag) {
    link_->abandon();
    link_->begin(tag, kCall);
    sinks_.clear();
    for (const std::size_t bytes : kMessages) {
      sinks_.emplace_back(bytes);
      Sink sink{sinks_.back()};
      if (bytes % kElement == 0) sink.combine = {add_bytes, kElement};
      link_->receive(sink);
    }
  }

  void take(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::array<std::span<const std::byte>, 1> parts{bytes};
      const Result<std::size_t> written = peer_->write(parts);
      if (!written.ok()) return;
      bytes = bytes.subspan(written.value());
      // A link that has stopped reading, permanently or until its next operation, leaves the ring
      // full.
      if (!move() && written.value() == 0) return;
    }
    while (move()) {
    }
  }

  void take_notes(std::uint64_t generation) {
    while (const auto note = link_->take_note(generation)) {
      fuzz::require(note->size() <= Link::kMaxNoteBytes, "notes are bounded");
    }
  }

 private:
  /// Whether anything was read.
  bool move() {
    bool moved = false;
    const bool was_broken = link_->broken();
    const Status status = link_->progress(moved);
    fuzz::require(link_->received() <= kMessages.size(), "no more arrives than is expected");
    if (was_broken) fuzz::require(status.code() == Code::kPeerLost, "a broken link stays so");
    const bool breaks = status.code() == Code::kProtocol || status.code() == Code::kPeerLost;
    fuzz::require(breaks == link_->broken(), "what is no frame breaks the link, other things not");
    return status.ok() && moved;
  }

  StreamPtr peer_;
  std::unique_ptr<Link> link_;
  std::vector<std::vector<std::byte>> sinks_;
};

/// A frame that is right unless the input wants it otherwise.
std::vector<std::byte> frame_of(fuzz::Input& input, bool note) {
  const std::uint8_t odd = input.byte();
  FrameHeader header;
  header.kind = note ? FrameKind::kNote : FrameKind::kData;
  header.tag = kTag;
  header.fingerprint = kCall;
  header.message = input.byte();
  header.length = input.number();
  header.offset = input.number();
  if ((odd & 1U) != 0) header.tag.generation += input.byte() % 3U - 1U;
  if ((odd & 2U) != 0) header.tag.position += input.byte() % 3U - 1U;
  if ((odd & 4U) != 0) header.tag.phase = input.byte() % 4U;
  if ((odd & 8U) != 0) header.fingerprint.count = input.byte();
  if ((odd & 16U) != 0) header.length <<= input.byte() % 9U;
  if ((odd & 32U) != 0) header.offset <<= input.byte() % 64U;
  if ((odd & 64U) != 0) header.kind = static_cast<FrameKind>(input.byte());
  const std::size_t sent = std::min<std::size_t>(header.length, 2 * kRingBytes);
  std::vector<std::byte> frame(FrameHeader::kBytes + sent, std::byte{input.byte()});
  encode(header, std::span(frame).first<FrameHeader::kBytes>());
  return frame;
}

/// Headers on their own.
void read_header(std::span<const std::byte> bytes) {
  if (bytes.size() < FrameHeader::kBytes) return;
  const Result<FrameHeader> header = decode(bytes.first<FrameHeader::kBytes>());
  if (!header.ok()) {
    fuzz::require(header.status().code() == Code::kProtocol, "failures are kProtocol");
    return;
  }
  fuzz::require(header.value().length <= FrameHeader::kMaxPayload, "lengths are bounded");
  std::array<std::byte, FrameHeader::kBytes> again{};
  encode(header.value(), again);
  const Result<FrameHeader> back = decode(again);
  fuzz::require(back.ok() && back.value().tag == header.value().tag &&
                    back.value().offset == header.value().offset &&
                    back.value().length == header.value().length &&
                    back.value().message == header.value().message &&
                    back.value().kind == header.value().kind &&
                    back.value().fingerprint == header.value().fingerprint,
                "a header comes back");
  (void)describe(header.value().fingerprint);
}

void run(fuzz::Input input) {
  Reader reader;
  OpTag tag = kTag;
  while (!input.empty()) {
    const std::uint8_t step = input.byte() % fuzz::kSteps;
    if (step == Step::kBegin) {
      tag.position += input.byte() % 2U;
      tag.phase = input.byte() % 3U;
      reader.begin(tag);
    } else if (step == Step::kTakeNotes) {
      reader.take_notes(kTag.generation + input.byte() % 3U - 1U);
    } else if (step == Step::kBytes) {
      const auto bytes = input.bytes(input.number());
      read_header(bytes);
      reader.take(bytes);
    } else {
      std::vector<std::byte> frame = frame_of(input, step == Step::kNote);
      if (step == Step::kDamaged) {
        const std::size_t at = input.number() % frame.size();
        frame[at] ^= std::byte(1U << (input.byte() % 8U));
      }
      read_header(frame);
      reader.take(frame);
    }
  }
}

}  // namespace
}  // namespace elastic::transport

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  elastic::transport::run(elastic::fuzz::Input(data, size));
  return 0;
}
