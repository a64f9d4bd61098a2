#include "collectives/transport/link.hpp"

#include <algorithm>
#include <poll.h>
#include <utility>

#include <sys/socket.h>

#include "collectives/transport/flow.hpp"
#include "collectives/transport/ring/eager_channel.hpp"

namespace elastic::transport {

namespace {

/// Nothing is expected on a flow that is not used, and every look is a system call.
constexpr unsigned kRoundsPerLook = 256;

/// The bytes that a flow takes before the link looks at received data. Two workers that both wrote
/// as long as there is room would soon take turns, the one reading what the other writes, and each
/// would wait half of the time.
constexpr std::size_t kBytesPerRound = Link::kStripeBytes;

}  // namespace

Link::Link(std::vector<StreamPtr> streams, std::string peer_name)
    : peer_name_(std::move(peer_name)), in_use_(streams.size()) {
  for (StreamPtr& stream : streams) {
    flows_.push_back(std::make_unique<Flow>(std::move(stream), flows_.size()));
  }
}
Link::~Link() = default;

void Link::begin(const OpTag& tag, const Fingerprint& fingerprint) {
  tag_ = tag;
  fingerprint_ = fingerprint;
  out_.clear();
  in_.clear();
  pull_ = 0;
  sent_ = 0;
  received_ = 0;
  looked_since_loss_ = false;
  for (const auto& flow : flows_) flow->deferred = false;
}

void Link::send(std::span<const std::byte> payload) {
  out_.push_back({payload});
  // A small message on an idle link leaves at once. A failure shows again in `progress`.
  bool moved = false;
  if (pull_ + 1 == out_.size() && !broken_) (void)write_flow(*flows_[turn_], moved);
}

void Link::receive(const Sink& sink) {
  in_.push_back({sink});
  looked_since_loss_ = false;
  for (const auto& flow : flows_) flow->deferred = false;
}

bool Link::complete() const {
  return sent_ == out_.size() && received_ == in_.size();
}

Status Link::progress(bool& moved) {
  if (broken_) return Status(Code::kPeerLost, "the link to " + peer_name_ + " is broken", peer_);
  // Data that a peer sent before it went is good, on the stream that ended and on all others: its
  // loss counts once there is nothing left to read, now or later in this operation.
  Status lost;
  bool moved_here = false;
  bool later = false;
  const bool looks_at_all = rounds_++ % kRoundsPerLook == 0;
  for (std::size_t i = 0, first = turn_; i < flows_.size(); ++i) {
    const auto& flow = flows_[(first + i) % flows_.size()];
    if (flow->idle() && !looks_at_all) continue;
    for (const auto move : {&Link::write_flow, &Link::read_flow}) {
      const Status status = (this->*move)(*flow, moved_here);
      if (status.ok()) continue;
      if (status.code() != Code::kPeerLost) return fail(status);
      flow->lost = true;
      lost = status;
    }
    later = later || (flow->deferred && of_this_operation(flow->header));
  }
  moved = moved || moved_here;
  if (!lost.ok() && !looks_at_all && !looked_since_loss_) {
    rounds_ = 0;
    moved = true;  // no thread may sleep before it has looked at all streams
    return {};
  }
  looked_since_loss_ = !lost.ok() && !moved_here;
  return lost.ok() || moved_here || (later && complete()) ? Status() : fail(lost);
}

Status Link::fail(const Status& status) {
  if (status.code() != Code::kMismatch && status.code() != Code::kOperationAborted) {
    broken_ = true;
    // The peer has to learn of it even while the link is still held here: it would consider its end
    // good and never make a new one.
    hang_up();
  }
  return Status(status.code(), peer_name_ + ": " + status.message(), peer_, tag_.generation);
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

EagerChannel* Link::eager_channel() const {
  return flows_.front()->stream->eager_channel();
}

ArenaView* Link::arena() const {
  return flows_.front()->stream->arena();
}

std::size_t Link::capacity() const {
  return flows_.front()->stream->capacity();
}

void Link::abandon() {
  for (const auto& flow : flows_) {
    if (EagerChannel* channel = flow->stream->eager_channel(); channel != nullptr)
      channel->forget();
    if (flow->message_out != Flow::kNoMessage) {
      // The peer counts on the rest of this frame; the caller's memory is no longer ours to read.
      flow->own_payload.assign(flow->payload_left.begin(), flow->payload_left.end());
      flow->payload_left = flow->own_payload;
      flow->message_out = Flow::kNoMessage;
    }
    if (flow->payload_action == Flow::PayloadAction::kApply)
      flow->payload_action = Flow::PayloadAction::kDrop;
  }
  out_.clear();
  in_.clear();
  pull_ = 0;
  sent_ = 0;
  received_ = 0;
}

void Link::send_note(std::uint64_t generation, std::vector<std::byte> payload) {
  notes_out_.push_back({generation, std::move(payload)});
}

std::optional<std::vector<std::byte>> Link::take_note(std::uint64_t generation) {
  while (!notes_in_.empty() && notes_in_.front().generation <= generation) {
    Note note = std::move(notes_in_.front());
    notes_in_.pop_front();
    note_bytes_ -= note.payload.size();
    if (note.generation == generation) return std::move(note.payload);
  }
  return std::nullopt;
}

bool Link::prepare_wait(std::vector<pollfd>& watched) {
  bool idle = true;
  watched_at_ = watched.size();
  for (const auto& flow : flows_) {
    short events = 0;
    idle = flow->stream->prepare_wait(!flow->deferred, flow->writing(), events) && idle;
    // poll(2) would return at once for ever for what is at its end; a negative one it skips.
    watched.push_back({flow->lost || flow->idle() ? -1 : flow->stream->fd(), events, 0});
    if (pending(*flow)) idle = false;
  }
  return idle;
}

/// Whether `progress` could move something without anything happening at the stream: a frame not
/// begun, bytes left for the next round, or a deferred header whose time has come since.
bool Link::pending(const Flow& flow) const {
  const bool to_begin = (pull_ < out_.size() && flow.in_use) ||
                        (&flow == flows_.front().get() && !notes_out_.empty());
  const bool to_admit =
      flow.has_header && flow.payload_action == Flow::PayloadAction::kNone && !flow.deferred;
  return (to_begin && !flow.writing() && !flow.lost) || flow.unfinished || to_admit;
}

void Link::watch_idle(std::span<pollfd> watched) const {
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (flows_[i]->idle()) watched[watched_at_ + i].fd = flows_[i]->stream->fd();
  }
}

void Link::finish_wait(std::span<const pollfd> watched) {
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const auto& flow = flows_[i];
    flow->stream->finish_wait();
    // One of those that are hardly ever looked at may have ended the sleep.
    const bool nothing_came =
        watched_at_ + i < watched.size() && watched[watched_at_ + i].revents == 0;
    if (!nothing_came && flow->idle()) rounds_ = 0;
    // No thread reads a deferred stream to its end.
    if (flow->deferred && flow->stream->peer_gone()) flow->lost = true;
  }
}

Result<bool> Link::look(TimePoint now) {
  bool again = false;
  for (const auto& flow : flows_) {
    const Result<bool> looked = flow->stream->look(now);
    if (!looked.ok()) return fail(looked.status());
    again = again || looked.value();
  }
  return again;
}

bool Link::hung_up() const {
  return std::any_of(flows_.begin(), flows_.end(), [](const auto& flow) {
    pollfd end{flow->stream->fd(), POLLRDHUP, 0};
    return ::poll(&end, 1, 0) > 0;
  });
}

void Link::hang_up() {
  for (const auto& flow : flows_) ::shutdown(flow->stream->fd(), SHUT_RDWR);
}

const char* Link::transport() const {
  return flows_.front()->stream->transport();
}

}  // namespace elastic::transport
