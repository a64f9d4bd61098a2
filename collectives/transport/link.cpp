#include "collectives/transport/link.hpp"

#include <algorithm>
#include <poll.h>
#include <utility>

#include <sys/socket.h>

#include "collectives/transport/flow.hpp"
#include "collectives/transport/flow_threads.hpp"
#include "collectives/transport/ring/eager_channel.hpp"

namespace elastic::transport {

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
  messages_.begin(tag, fingerprint);
  looked_since_loss_ = false;
}

void Link::receive(const Sink& sink) {
  messages_.post_receive(sink);
  looked_since_loss_ = false;
  if (threads_ != nullptr) threads_->posted();
}

void Link::share(FlowThreads* threads) {
  threads_ = threads;
  messages_.share(threads != nullptr);
}

FlowShare Link::own_share() const {
  return threads_ == nullptr ? FlowShare() : FlowShare{0, threads_->count()};
}

Status Link::progress_share(const FlowShare& share, bool looks_at_all, bool& moved) {
  for (std::size_t i = share.index; i < flows_.size(); i += share.of) {
    Flow& flow = *flows_[i];
    if (flow.idle() && !looks_at_all) continue;
    if (Status status = write_flow(flow, moved); !status.ok()) return status;
    if (Status status = read_flow(flow, moved); !status.ok()) return status;
  }
  return {};
}

Status Link::progress(bool& moved) {
  if (broken_) return Status(Code::kPeerLost, "the link to " + peer_name_ + " is broken", peer_);
  const bool looks_at_all = rounds_++ % kRoundsPerLook == 0;
  if (threads_ != nullptr) return progress_share(own_share(), looks_at_all, moved);
  // Data that a peer sent before it went is good, on the stream that ended and on all others: its
  // loss counts once there is nothing left to read, now or later in this operation.
  Status lost;
  bool moved_here = false;
  bool later = false;
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
    later = later || (is_deferred(*flow) && messages_.same_operation(flow->header));
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
  return Status(status.code(), peer_name_ + ": " + status.message(), peer_,
                messages_.tag().generation);
}

void Link::abandon() {
  if (EagerChannel* const channel = eager_channel(); channel != nullptr) channel->forget();
  for (const auto& flow : flows_) {
    if (flow->stripe) {
      // The peer counts on the rest of this frame; the caller's memory is no longer ours to read.
      flow->own_payload.assign(flow->payload_left.begin(), flow->payload_left.end());
      flow->payload_left = flow->own_payload;
      flow->stripe.reset();
    }
    if (flow->payload_action == Flow::PayloadAction::kApply)
      flow->payload_action = Flow::PayloadAction::kDrop;
  }
  messages_.clear();
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
  watched_at_ = watched.size();
  return prepare_share_wait(own_share(), /*also_unused=*/false, watched);
}

bool Link::prepare_share_wait(const FlowShare& share, bool also_unused,
                              std::vector<pollfd>& watched) {
  bool idle = true;
  for (std::size_t i = share.index; i < flows_.size(); i += share.of) {
    const auto& flow = flows_[i];
    short events = 0;
    idle = flow->stream->prepare_wait(!is_deferred(*flow), flow->writing(), events) && idle;
    // poll(2) would return at once for ever for what is at its end; a negative one it skips.
    const bool skipped = flow->lost || (flow->idle() && !also_unused);
    watched.push_back({skipped ? -1 : flow->stream->fd(), events, 0});
    if (pending(*flow)) idle = false;
  }
  return idle;
}

/// Whether `progress` could move something without anything happening at the stream: a frame not
/// begun, bytes left for the next round, or a deferred header whose time has come since.
bool Link::pending(const Flow& flow) const {
  const bool to_begin = (flow.in_use && messages_.has_stripes()) ||
                        (&flow == flows_.front().get() && !notes_out_.empty());
  const bool to_admit =
      flow.has_header && flow.payload_action == Flow::PayloadAction::kNone && !is_deferred(flow);
  return (to_begin && !flow.writing() && !flow.lost) || flow.unfinished || to_admit;
}

void Link::watch_idle(std::span<pollfd> watched) const {
  const FlowShare share = own_share();
  for (std::size_t i = share.index, at = watched_at_; i < flows_.size(); i += share.of, ++at) {
    if (flows_[i]->idle()) watched[at].fd = flows_[i]->stream->fd();
  }
}

void Link::finish_wait(std::span<const pollfd> watched) {
  const FlowShare share = own_share();
  for (std::size_t i = share.index, at = watched_at_; i < flows_.size(); i += share.of, ++at) {
    // One of those that are hardly ever looked at may have ended the sleep.
    const bool nothing_came = at < watched.size() && watched[at].revents == 0;
    if (!nothing_came && flows_[i]->idle()) rounds_ = 0;
  }
  finish_share_wait(share);
}

void Link::finish_share_wait(const FlowShare& share) {
  for (std::size_t i = share.index; i < flows_.size(); i += share.of) {
    const auto& flow = flows_[i];
    flow->stream->finish_wait();
    // No thread reads a deferred stream to its end.
    if (is_deferred(*flow) && flow->stream->peer_gone()) flow->lost = true;
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
