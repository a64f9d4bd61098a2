#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/transport/frame.hpp"
#include "collectives/transport/sink.hpp"

namespace elastic::transport {

/// The messages of one operation on a link: which are posted, and how much of each the flows have
/// sent and received.
///
/// Owned by the thread that owns the link, which alone posts. While it is `share`d, the threads
/// that move flows may call what is below "for flows"; otherwise nothing is locked.
class LinkMessages {
 public:
  static constexpr std::size_t kStripeBytes = 256 * 1024;
  static constexpr std::size_t kLeastStripeBytes = 64 * 1024;

  void begin(const OpTag& tag, const Fingerprint& fingerprint);
  /// Forgets everything posted.
  void clear();
  void share(bool with_others) { shared_ = with_others; }
  bool shared() const { return shared_; }

  void post_send(std::span<const std::byte> payload);
  void post_receive(const Sink& sink);

  const OpTag& tag() const { return tag_; }
  const Fingerprint& fingerprint() const { return fingerprint_; }
  bool same_operation(const FrameHeader& header) const {
    return header.tag.generation == tag_.generation && header.tag.position == tag_.position;
  }

  // For flows.

  /// Messages whose last byte was sent / arrived and was applied, without gaps.
  std::size_t sent() const { return sent_.load(std::memory_order_acquire); }
  std::size_t received() const { return received_.load(std::memory_order_acquire); }
  bool complete() const {
    return sent() == sends_.load(std::memory_order_acquire) &&
           received() == receives_.load(std::memory_order_acquire);
  }
  /// Whether there are stripes that no flow has taken.
  bool has_stripes() const {
    return pull_.load(std::memory_order_acquire) < sends_.load(std::memory_order_acquire);
  }
  /// Grows whenever a frame may be let in that was not before.
  std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  /// A part of a message that one flow sends in one frame.
  struct Stripe {
    std::size_t message = 0;
    std::size_t offset = 0;
    std::span<const std::byte> payload;
  };
  /// The next one, for one of `flows` flows that share the messages; none if all are taken.
  std::optional<Stripe> take_stripe(std::size_t flows);
  /// The flow has sent it.
  void stripe_sent(const Stripe& stripe);

  /// The decision on a data frame's payload.
  struct Admission {
    enum class Kind { kApply, kDrop, kDefer };
    Kind kind = Kind::kApply;
    Sink sink{};                ///< of the message, if it is kApply
    std::uint64_t changes = 0;  ///< if it is kDefer: ask again when `changes` is another number
  };
  /// kMismatch: the peer, rank `peer`, has made another call; kOperationAborted: it has aborted
  /// this one; kProtocol: the frame does not fit its message.
  Result<Admission> admit(const FrameHeader& header, int peer);
  /// The flow has applied the payload of an admitted frame.
  void stripe_received(const FrameHeader& header);

 private:
  /// A message on its way out. Several flows may have stripes of it in hand.
  struct Outgoing {
    std::span<const std::byte> payload;
    std::size_t taken = 0;  // bytes that flows have taken charge of
    std::size_t sent = 0;
    bool done = false;
  };
  /// A message that is expected.
  struct Incoming {
    Sink sink;
    std::size_t claimed = 0;  // bytes of the stripes that were let in
    std::size_t arrived = 0;  // bytes of those that were applied to their end
    bool done = false;
  };

  std::unique_lock<std::mutex> lock() {
    return shared_ ? std::unique_lock(mutex_) : std::unique_lock(mutex_, std::defer_lock);
  }
  Result<Admission> admit_to(Incoming& message, const FrameHeader& header);

  // Change only while no other thread moves flows.
  OpTag tag_;
  Fingerprint fingerprint_;
  bool shared_ = false;

  std::mutex mutex_;  // of these two, and of all changes
  std::vector<Outgoing> out_;
  std::vector<Incoming> in_;
  std::atomic<std::size_t> sends_{0};  // out_.size()
  std::atomic<std::size_t> receives_{0};
  std::atomic<std::size_t> pull_{0};  // the message that flows take stripes of
  std::atomic<std::size_t> sent_{0};
  std::atomic<std::size_t> received_{0};
  std::atomic<std::uint64_t> changes_{1};
};

}  // namespace elastic::transport
