// The receiving half of Link: frames off the streams, each to its message, note or nowhere.
#include <algorithm>
#include <string>

#include "collectives/transport/flow.hpp"
#include "collectives/transport/flow_threads.hpp"
#include "collectives/transport/link.hpp"

namespace elastic::transport {

namespace {

/// A combine looks at received bytes in place; fewer than this at a time are not worth a look.
constexpr std::size_t kCombineBytes = 4096;

/// The bytes that one stream may bring in per round, so that a fast sender does not keep us from
/// writing and from the other streams.
constexpr std::size_t kMostPerRound = 2 * Link::kStripeBytes;

}  // namespace

/// Whether what has come has to wait for a later operation, or for a message to be posted.
bool Link::is_deferred(const Flow& flow) const {
  return flow.deferred_at == messages_.changes();
}

Status Link::read_flow(Flow& flow, bool& moved) {
  if (flow.lost && is_deferred(flow) && !messages_.same_operation(flow.header)) {
    return Status(Code::kPeerLost, "the peer is gone");
  }
  flow.unfinished = false;
  std::size_t brought = 0;
  while (!is_deferred(flow)) {
    if (brought >= kMostPerRound) {
      flow.unfinished = true;
      return {};
    }
    if (!flow.has_header) {
      if (Status status = read_header(flow, moved); !status.ok()) return status;
      if (!flow.has_header) return {};
    }
    if (flow.payload_action == Flow::PayloadAction::kNone) {
      if (Status status = admit(flow); !status.ok()) return status;
      if (flow.payload_action == Flow::PayloadAction::kNone) return {};
    }
    const std::size_t before = flow.payload_read;
    if (Status status = read_payload(flow, moved); !status.ok()) return status;
    if (flow.has_header && flow.payload_read == before) return {};  // more has to arrive first
    brought += FrameHeader::kBytes + flow.payload_read - before;
    // Nothing more is waited for: a look whether there is something costs a system call.
    if (!flow.has_header && complete()) {
      flow.unfinished = true;
      return {};
    }
  }
  return {};
}

Status Link::read_header(Flow& flow, bool& moved) {
  auto bytes = flow.stream->peek(FrameHeader::kBytes);
  if (!bytes.ok()) return bytes.status();
  if (bytes.value().empty()) return {};
  Result<FrameHeader> header = decode(bytes.value().first<FrameHeader::kBytes>());
  if (!header.ok()) return header.status();
  flow.stream->consume(FrameHeader::kBytes);
  moved = true;
  flow.header = header.value();
  flow.has_header = true;
  flow.payload_action = Flow::PayloadAction::kNone;
  flow.payload_read = 0;
  if (flow.header.payload_checksum != 0) flow.received.reset();
  return {};
}

/// Decides what becomes of the payload behind a header, or defers that.
Status Link::admit(Flow& flow) {
  return flow.header.kind == FrameKind::kData ? admit_data(flow) : admit_note(flow);
}

/// Notes come over the first flow, as `load_next_frame` sends them: one thread alone has them.
Status Link::admit_note(Flow& flow) {
  if (&flow != &first_flow()) return Status(Code::kProtocol, "a note came over another flow");
  if (flow.header.length > kMaxNoteBytes || notes_in_.size() >= kMaxNotes ||
      note_bytes_ + flow.header.length > kMaxUntakenBytes) {
    return Status(Code::kProtocol, "too large a note, or too many");
  }
  flow.payload_action = Flow::PayloadAction::kNote;
  flow.note.resize(flow.header.length);
  return {};
}

Status Link::admit_data(Flow& flow) {
  using Kind = LinkMessages::Admission::Kind;
  const FrameHeader& header = flow.header;
  const Result<LinkMessages::Admission> admitted = messages_.admit(header, peer_);
  if (!admitted.ok()) return admitted.status();
  switch (admitted.value().kind) {
    case Kind::kDrop:
      flow.payload_action = Flow::PayloadAction::kDrop;
      break;
    case Kind::kDefer:
      flow.deferred_at = admitted.value().changes;
      break;
    case Kind::kApply:
      flow.payload_action = Flow::PayloadAction::kApply;
      flow.sink = admitted.value().sink;
      if (threads_ != nullptr) threads_->after_receiving();
      if (flow.sink.overwriting != nullptr) {
        flow.sink.overwriting->about_to(flow.sink.into.subspan(
            static_cast<std::size_t>(header.offset), static_cast<std::size_t>(header.length)));
      }
      break;
  }
  return {};
}

Status Link::read_payload(Flow& flow, bool& moved) {
  const std::size_t left = flow.header.length - flow.payload_read;
  std::size_t taken = 0;
  if (left > 0) {
    switch (flow.payload_action) {
      case Flow::PayloadAction::kApply: {
        if (Status status = apply(flow, taken); !status.ok()) return status;
        break;
      }
      case Flow::PayloadAction::kNote: {
        auto got = flow.stream->read(std::span(flow.note).subspan(flow.payload_read));
        if (!got.ok()) return got.status();
        taken = got.value();
        account(flow, std::span(flow.note).subspan(flow.payload_read, taken));
        break;
      }
      case Flow::PayloadAction::kDrop:
      case Flow::PayloadAction::kNone: {
        auto bytes = flow.stream->peek(1);
        if (!bytes.ok()) return bytes.status();
        taken = std::min(bytes.value().size(), left);
        flow.stream->consume(taken);
        break;
      }
    }
  }
  moved = moved || taken > 0;
  flow.payload_read += taken;
  if (flow.payload_read < flow.header.length) return {};
  if (Status status = verify(flow); !status.ok()) return status;
  moved = true;  // also where the payload is empty, and its header was read long ago
  finish_payload(flow);
  return {};
}

/// Counts received bytes into the checksum of their frame, if it has one.
void Link::account(Flow& flow, std::span<const std::byte> bytes) {
  if (flow.header.payload_checksum != 0) flow.received.add(bytes);
}

/// Whether a payload that was read to its end is the one that was sent. By now it may have been
/// combined with what was in its place: no harm, because a message does not count as received
/// before all of it was verified, and an operation that fails is replayed from its inputs.
Status Link::verify(const Flow& flow) const {
  const FrameHeader& header = flow.header;
  if (header.payload_checksum == 0 || flow.payload_action == Flow::PayloadAction::kDrop ||
      flow.received.value() == header.payload_checksum) {
    return {};
  }
  const std::string of = header.kind == FrameKind::kNote
                             ? " bytes of a note"
                             : " bytes of operation " + std::to_string(header.tag.position);
  return Status(Code::kProtocol, std::to_string(header.length) + of +
                                     " were damaged on the way: their checksum is wrong");
}

/// Puts what has arrived of a stripe where its message goes: copied there, or combined with what is
/// there straight from where it was received.
Status Link::apply(Flow& flow, std::size_t& taken) {
  const Sink& sink = flow.sink;
  const std::size_t left = flow.header.length - flow.payload_read;
  const std::size_t offset = static_cast<std::size_t>(flow.header.offset) + flow.payload_read;
  const std::span<std::byte> into = sink.into.subspan(offset, left);
  if (sink.combine.function == nullptr) {
    auto got = flow.stream->read(into);
    if (!got.ok()) return got.status();
    taken = got.value();
    account(flow, into.first(taken));
    return {};
  }
  auto bytes = flow.stream->peek(std::min(left, kCombineBytes));
  if (!bytes.ok()) return bytes.status();
  const std::size_t elements = std::min(bytes.value().size(), left) / sink.combine.element;
  taken = elements * sink.combine.element;
  if (taken > 0) {
    account(flow, bytes.value().first(taken));
    const std::byte* const operand =
        sink.combine.operand == nullptr ? into.data() : sink.combine.operand + offset;
    const std::byte* const received = bytes.value().data();
    const bool first = sink.combine.received_first;
    sink.combine.function(into.data(), first ? received : operand, first ? operand : received,
                          elements);
    flow.stream->consume(taken);
  }
  return {};
}

void Link::finish_payload(Flow& flow) {
  flow.has_header = false;
  if (flow.payload_action == Flow::PayloadAction::kNote) {
    note_bytes_ += flow.note.size();
    notes_in_.push_back({flow.header.tag.generation, std::move(flow.note)});
    flow.note.clear();
  } else if (flow.payload_action == Flow::PayloadAction::kApply) {
    messages_.stripe_received(flow.header);
    if (threads_ != nullptr) threads_->completed();
  }
  flow.payload_action = Flow::PayloadAction::kNone;
}

}  // namespace elastic::transport
