#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/transport/frame.hpp"
#include "collectives/transport/ring/doorbell.hpp"
#include "collectives/transport/ring/peer_writer.hpp"

namespace elastic::transport {

/// A small message in one piece, with the tag of its operation. A short message lies on one cache
/// line with its tag.
struct alignas(64) EagerSlot {
  static constexpr std::size_t kMostBytes = 64 * 1024;

  std::atomic<std::uint64_t> tag{0};  ///< written last
  std::uint64_t bytes = 0;
  Fingerprint fingerprint;
  std::byte payload[kMostBytes];
};

/// Room for the eager messages of one direction. Consecutive operations take turns, so that an
/// eager message may be written while the one before is still being read.
struct EagerSlots {
  EagerSlot slots[2];
  /// The operation for which the sender's tensors stay as they are; 0: for none.
  alignas(64) std::atomic<std::uint64_t> pinned_operation{0};
};

/// Eager messages between two workers of one host, beside the bytes of the ring: written and read
/// without framing, queues or system calls, for operations whose whole cost is their latency.
///
/// An eager message has the operation's tag, and lies where its position says. The rank that posts
/// the eager message of position p has completed position p - 1, which the peer has entered, so
/// that the eager message of position p - 2, in the same place, has been read. Eager messages of
/// older views are recognised by their tags.
///
/// Owned by the thread that owns the link.
class EagerChannel {
 public:
  EagerChannel(EagerSlots& out, EagerSlots& in, std::atomic<std::uint32_t>& peer_sleeps,
               Doorbell& doorbell)
      : out_(out), in_(in), peer_sleeps_(peer_sleeps), doorbell_(doorbell) {}

  /// `payload` has at most EagerSlot::kMostBytes. Returns its place; it stays until the operation
  /// after the next.
  const std::byte* post(const OpTag& tag, const Fingerprint& fingerprint,
                        std::span<const std::byte> payload);

  /// The peer's eager message for this operation; null while it is not there.
  const EagerSlot* look(const OpTag& tag) {
    const std::uint64_t number = number_of(tag);
    EagerSlot& slot = in_.slots[tag.position % 2];
    awaited_ = number;
    awaited_in_ = &slot;
    if (slot.tag.load(std::memory_order_acquire) != number) return nullptr;
    awaited_ = 0;
    return &slot;
  }

  /// Whether the message that `look` did not find has arrived. For a thread that is about to sleep.
  bool arrived() const {
    return awaited_ != 0 && awaited_in_->tag.load(std::memory_order_seq_cst) == awaited_;
  }
  /// Says that in the operation `tag` the peer may read this worker's tensors in place.
  /// Before the eager message that tells it where.
  void pin(const OpTag& tag) {
    out_.pinned_operation.store(number_of(tag), std::memory_order_relaxed);
  }
  /// Ends what `pin` allows. A `full_fence` must follow before the tensors change.
  void unpin() { out_.pinned_operation.store(0, std::memory_order_relaxed); }
  /// Whether the peer's tensors have been as they were up to now, since its eager message for `tag`
  /// came. A `full_fence` must lie between the reading of them and this.
  bool pinned(const OpTag& tag) const {
    return in_.pinned_operation.load(std::memory_order_relaxed) == number_of(tag);
  }

  /// Forgets the message that `look` did not find.
  void forget() { awaited_ = 0; }

 private:
  /// No link lives through the 2^24 views after which a number could come again.
  static std::uint64_t number_of(const OpTag& tag) {
    return (tag.generation << 40) ^ (tag.position + 1);
  }

  EagerSlots& out_;
  EagerSlots& in_;
  std::atomic<std::uint32_t>& peer_sleeps_;
  Doorbell& doorbell_;
  PeerWriter writer_;
  std::uint64_t awaited_ = 0;
  EagerSlot* awaited_in_ = nullptr;
};

}  // namespace elastic::transport
