// The sending half of Link: notes and stripes of messages to the streams.
#include <algorithm>
#include <array>
#include <utility>

#include "collectives/transport/flow.hpp"
#include "collectives/transport/link.hpp"

namespace elastic::transport {

namespace {

/// The bytes that a flow takes before the link looks at received data. Two workers that both wrote
/// as long as there is room would soon take turns, the one reading what the other writes, and each
/// would wait half of the time.
constexpr std::size_t kBytesPerRound = Link::kStripeBytes;

}  // namespace

void Link::send(std::span<const std::byte> payload) {
  out_.push_back({payload});
  // A small message on an idle link leaves at once. A failure shows again in `progress`.
  bool moved = false;
  if (pull_ + 1 == out_.size() && !broken_) (void)write_flow(*flows_[turn_], moved);
}

void Link::send_note(std::uint64_t generation, std::vector<std::byte> payload) {
  notes_out_.push_back({generation, std::move(payload)});
}

Status Link::write_flow(Flow& flow, bool& moved) {
  if (flow.lost) return Status(Code::kPeerLost, "the peer is gone");
  std::size_t taken = 0;
  for (;;) {
    if (!flow.writing() && !load_next_frame(flow)) return {};
    const std::array<std::span<const std::byte>, 2> parts = {flow.header_left, flow.payload_left};
    Result<std::size_t> written = flow.stream->write(parts);
    if (!written.ok()) return written.status();
    if (written.value() == 0) return {};
    moved = true;
    taken += written.value();
    bytes_->add(written.value());
    const std::size_t of_header = std::min(written.value(), flow.header_left.size());
    const std::size_t of_payload = written.value() - of_header;
    flow.header_left = flow.header_left.subspan(of_header);
    flow.payload_left = flow.payload_left.subspan(of_payload);
    if (flow.message_out != Flow::kNoMessage) {
      out_[flow.message_out].written += of_payload;
      if (!flow.writing()) count_sent(std::exchange(flow.message_out, Flow::kNoMessage));
    }
    // A flow with room for all of a message would keep it from the others.
    if (!flow.writing() && (in_use_ > 1 || taken >= kBytesPerRound)) return {};
  }
}

/// Marks a message done when its last stripe is out, and counts the done ones from the front.
void Link::count_sent(std::size_t message) {
  out_[message].done = out_[message].written == out_[message].payload.size();
  while (sent_ < out_.size() && out_[sent_].done) ++sent_;
}

/// Takes the next note or stripe into a flow that has nothing to write. False when there is none.
bool Link::load_next_frame(Flow& flow) {
  if (&flow == &first_flow() && !notes_out_.empty()) {
    Note note = std::move(notes_out_.front());
    notes_out_.pop_front();
    flow.own_payload = std::move(note.payload);
    FrameHeader header;
    header.kind = FrameKind::kNote;
    header.tag.generation = note.generation;
    header.length = static_cast<std::uint32_t>(flow.own_payload.size());
    if (flow.stream->needs_checksum()) header.payload_checksum = checksum(flow.own_payload);
    encode(header, flow.header_out);
    flow.header_left = flow.header_out;
    flow.payload_left = flow.own_payload;
    return true;
  }
  if (pull_ == out_.size() || !flow.in_use) return false;
  load_stripe(flow, out_[pull_]);
  return true;
}

/// So that every flow in use has something of a message that is long enough.
std::size_t Link::stripe_bytes(const Outgoing& message) const {
  if (in_use_ == 1) return kStripeBytes;
  const std::size_t share =
      message.payload.size() / in_use_ / kLeastStripeBytes * kLeastStripeBytes;
  return std::clamp(share, kLeastStripeBytes, kStripeBytes);
}

void Link::load_stripe(Flow& flow, Outgoing& message) {
  const std::size_t bytes =
      std::min(stripe_bytes(message), message.payload.size() - message.pulled);
  FrameHeader header;
  header.kind = FrameKind::kData;
  header.tag = tag_;
  header.message = static_cast<std::uint32_t>(pull_);
  header.length = static_cast<std::uint32_t>(bytes);
  header.offset = message.pulled;
  header.fingerprint = fingerprint_;
  const auto stripe = message.payload.subspan(message.pulled, bytes);
  if (flow.stream->needs_checksum()) header.payload_checksum = checksum(stripe);
  encode(header, flow.header_out);
  flow.header_left = flow.header_out;
  flow.payload_left = stripe;
  flow.message_out = pull_;
  message.pulled += bytes;
  if (message.pulled == message.payload.size()) ++pull_;
  turn_ = (flow.index + 1) % in_use_;
}

void Link::use_flows(std::size_t most) {
  in_use_ = std::clamp<std::size_t>(most, 1, flows_.size());
  for (std::size_t i = 0; i < flows_.size(); ++i) flows_[i]->in_use = i < in_use_;
  turn_ = 0;
}

}  // namespace elastic::transport
