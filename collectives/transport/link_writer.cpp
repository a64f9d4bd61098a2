// The sending half of Link: notes and stripes of messages to the streams.
#include <algorithm>
#include <array>
#include <utility>

#include "collectives/transport/flow.hpp"
#include "collectives/transport/flow_threads.hpp"
#include "collectives/transport/link.hpp"

namespace elastic::transport {

namespace {

/// The bytes that a flow takes before the link looks at received data. Two workers that both wrote
/// as long as there is room would soon take turns, the one reading what the other writes, and each
/// would wait half of the time.
constexpr std::size_t kBytesPerRound = Link::kStripeBytes;

}  // namespace

void Link::send(std::span<const std::byte> payload) {
  const bool others_wait = messages_.has_stripes();
  messages_.post_send(payload);
  if (threads_ != nullptr) return threads_->posted();
  // A small message on an idle link leaves at once. A failure shows again in `progress`.
  bool moved = false;
  if (!others_wait && !broken_) (void)write_flow(*flows_[turn_], moved);
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
    if (threads_ != nullptr) threads_->before_sending();
    Result<std::size_t> written = flow.stream->write(parts);
    if (!written.ok()) return written.status();
    if (written.value() == 0) return {};
    moved = true;
    taken += written.value();
    count_bytes(written.value());
    const std::size_t of_header = std::min(written.value(), flow.header_left.size());
    flow.header_left = flow.header_left.subspan(of_header);
    flow.payload_left = flow.payload_left.subspan(written.value() - of_header);
    if (!flow.writing()) frame_written(flow);
    // A flow with room for all of a message would keep it from the others.
    if (!flow.writing() && (in_use_ > 1 || taken >= kBytesPerRound)) return {};
  }
}

void Link::count_bytes(std::size_t bytes) {
  if (threads_ == nullptr) {
    bytes_->add(bytes);
  } else {
    bytes_->add_from_any_thread(bytes);
  }
}

void Link::frame_written(Flow& flow) {
  if (!flow.stripe) return;
  messages_.stripe_sent(*flow.stripe);
  flow.stripe.reset();
  if (threads_ != nullptr) threads_->completed();
}

/// Takes the next note or stripe into a flow that has nothing to write. False when there is none.
bool Link::load_next_frame(Flow& flow) {
  return (&flow == &first_flow() && load_note(flow)) || load_stripe(flow);
}

bool Link::load_note(Flow& flow) {
  if (notes_out_.empty()) return false;
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

bool Link::load_stripe(Flow& flow) {
  if (!flow.in_use) return false;
  flow.stripe = messages_.take_stripe(in_use_);
  if (!flow.stripe) return false;
  const LinkMessages::Stripe& stripe = *flow.stripe;
  FrameHeader header;
  header.kind = FrameKind::kData;
  header.tag = messages_.tag();
  header.message = static_cast<std::uint32_t>(stripe.message);
  header.length = static_cast<std::uint32_t>(stripe.payload.size());
  header.offset = stripe.offset;
  header.fingerprint = messages_.fingerprint();
  if (flow.stream->needs_checksum()) header.payload_checksum = checksum(stripe.payload);
  encode(header, flow.header_out);
  flow.header_left = flow.header_out;
  flow.payload_left = stripe.payload;
  if (threads_ == nullptr) turn_ = (flow.index + 1) % in_use_;
  return true;
}

void Link::use_flows(std::size_t most) {
  in_use_ = std::clamp<std::size_t>(most, 1, flows_.size());
  for (std::size_t i = 0; i < flows_.size(); ++i) flows_[i]->in_use = i < in_use_;
  turn_ = 0;
}

}  // namespace elastic::transport
