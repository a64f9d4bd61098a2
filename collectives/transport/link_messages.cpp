#include "collectives/transport/link_messages.hpp"

#include <algorithm>
#include <string>

namespace elastic::transport {

namespace {

/// So that every flow in use has something of a message that is long enough.
std::size_t stripe_bytes(std::size_t message, std::size_t flows) {
  if (flows == 1) return LinkMessages::kStripeBytes;
  constexpr std::size_t kLeast = LinkMessages::kLeastStripeBytes;
  const std::size_t share = message / flows / kLeast * kLeast;
  return std::clamp(share, kLeast, LinkMessages::kStripeBytes);
}

/// One thread at a time changes the counts, so that this costs as much as for plain numbers.
template <typename Count>
void increment(std::atomic<Count>& count) {
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

/// Counts the messages that are done, without gaps.
template <typename Messages>
void count_done(const Messages& messages, std::atomic<std::size_t>& done) {
  std::size_t count = done.load(std::memory_order_relaxed);
  while (count < messages.size() && messages[count].done) ++count;
  done.store(count, std::memory_order_release);
}

}  // namespace

void LinkMessages::begin(const OpTag& tag, const Fingerprint& fingerprint) {
  tag_ = tag;
  fingerprint_ = fingerprint;
  clear();
}

void LinkMessages::clear() {
  out_.clear();
  in_.clear();
  for (auto* const count : {&sends_, &receives_, &pull_, &sent_, &received_}) {
    count->store(0, std::memory_order_relaxed);
  }
  increment(changes_);
}

void LinkMessages::post_send(std::span<const std::byte> payload) {
  const auto locked = lock();
  out_.push_back({payload});
  increment(sends_);
}

void LinkMessages::post_receive(const Sink& sink) {
  const auto locked = lock();
  in_.push_back({sink});
  increment(receives_);
  increment(changes_);
}

std::optional<LinkMessages::Stripe> LinkMessages::take_stripe(std::size_t flows) {
  if (!has_stripes()) return std::nullopt;
  const auto locked = lock();
  const std::size_t index = pull_.load(std::memory_order_relaxed);
  if (index == out_.size()) return std::nullopt;  // another flow was quicker
  Outgoing& message = out_[index];
  const std::size_t left = message.payload.size() - message.taken;
  const std::size_t bytes = std::min(stripe_bytes(message.payload.size(), flows), left);
  const Stripe stripe{index, message.taken, message.payload.subspan(message.taken, bytes)};
  message.taken += bytes;
  if (message.taken == message.payload.size()) increment(pull_);
  return stripe;
}

void LinkMessages::stripe_sent(const Stripe& stripe) {
  const auto locked = lock();
  Outgoing& message = out_[stripe.message];
  message.sent += stripe.payload.size();
  message.done = message.sent == message.payload.size();
  count_done(out_, sent_);
}

Result<LinkMessages::Admission> LinkMessages::admit(const FrameHeader& header, int peer) {
  if (header.tag < tag_) return Admission{.kind = Admission::Kind::kDrop};
  if (header.tag > tag_) {
    if (same_operation(header) && header.tag.phase == OpTag::kAbortOperation &&
        tag_.phase == OpTag::kNormal) {
      return Status(Code::kOperationAborted,
                    "another rank found that the ranks call different things");
    }
    return Admission{.kind = Admission::Kind::kDefer, .changes = changes()};
  }
  if (tag_.phase == OpTag::kNormal && header.fingerprint != fingerprint_) {
    return mismatch(fingerprint_, peer, header.fingerprint);
  }
  const auto locked = lock();
  if (header.message >= in_.size()) {
    return Admission{.kind = Admission::Kind::kDefer, .changes = changes()};
  }
  return admit_to(in_[header.message], header);
}

/// More stripes than the message has bytes would be written to memory that is no longer ours.
Result<LinkMessages::Admission> LinkMessages::admit_to(Incoming& message,
                                                       const FrameHeader& header) {
  const std::size_t bytes = message.sink.into.size();
  const std::size_t element = message.sink.combine.element;
  if (message.done || header.length > bytes - message.claimed || header.offset > bytes ||
      header.length > bytes - header.offset || header.length % element != 0 ||
      header.offset % element != 0) {
    return Status(Code::kProtocol, "message " + std::to_string(header.message) +
                                       " has a stripe of " + std::to_string(header.length) +
                                       " bytes at " + std::to_string(header.offset) +
                                       ", which does not fit its " + std::to_string(bytes) +
                                       " bytes of " + std::to_string(element) + " each");
  }
  message.claimed += header.length;
  return Admission{.sink = message.sink};
}

void LinkMessages::stripe_received(const FrameHeader& header) {
  const auto locked = lock();
  Incoming& message = in_[header.message];
  message.arrived += header.length;
  message.done = message.arrived == message.sink.into.size();
  count_done(in_, received_);
}

}  // namespace elastic::transport
