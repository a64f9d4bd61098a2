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

}  // namespace

Link::Link(std::vector<StreamPtr> streams, std::string peer_name)
    : peer_name_(std::move(peer_name)),
      shared_memory_(dynamic_cast<SharedMemoryFeatures*>(streams.front().get())),
      in_use_(streams.size()) {
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

void Link::abandon() {
  if (EagerChannel* const channel = eager_channel(); channel != nullptr) channel->forget();
  for (const auto& flow : flows_) {
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
