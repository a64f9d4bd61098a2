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
struct alignas(64) Letter {
  static constexpr std::size_t kMostBytes = 64 * 1024;

  std::atomic<std::uint64_t> tag{0};  ///< written last
  std::uint64_t bytes = 0;
  Fingerprint fingerprint;
  std::byte payload[kMostBytes];
};

/// Room for the letters of one direction. Consecutive operations take turns, so that a letter may
/// be written while the one before is still being read.
struct Letterbox {
  Letter letters[2];
  /// The operation for which the sender's tensors stay as they are; 0: for none.
  alignas(64) std::atomic<std::uint64_t> still{0};
};

/// Letters between two workers of one host, beside the bytes of the ring: written and read without
/// framing, queues or system calls, for operations whose whole cost is their latency.
///
/// A letter has the operation's tag, and lies where its position says. The rank that posts the
/// letter of position p has completed position p - 1, which the peer has entered, so that the
/// letter of position p - 2, in the same place, has been read. Letters of older views are
/// recognised by their tags.
///
/// Owned by the thread that owns the link.
class Mailbox {
 public:
  Mailbox(Letterbox& out, Letterbox& in, std::atomic<std::uint32_t>& peer_sleeps,
          Doorbell& doorbell)
      : out_(out), in_(in), peer_sleeps_(peer_sleeps), doorbell_(doorbell) {}

  /// `payload` has at most Letter::kMostBytes. Returns its place; it stays until the operation
  /// after the next.
  const std::byte* post(const OpTag& tag, const Fingerprint& fingerprint,
                        std::span<const std::byte> payload);

  /// The peer's letter for this operation; null while it is not there.
  const Letter* look(const OpTag& tag) {
    const std::uint64_t number = number_of(tag);
    Letter& letter = in_.letters[tag.position % 2];
    awaited_ = number;
    awaited_in_ = &letter;
    if (letter.tag.load(std::memory_order_acquire) != number) return nullptr;
    awaited_ = 0;
    return &letter;
  }

  /// Whether what `look` did not find is there now. For a thread that is about to sleep.
  bool arrived() const {
    return awaited_ != 0 && awaited_in_->tag.load(std::memory_order_seq_cst) == awaited_;
  }
  /// Says that in the operation `tag` the peer may read this worker's tensors in place.
  /// Before the letter that tells it where.
  void hold_still(const OpTag& tag) { out_.still.store(number_of(tag), std::memory_order_relaxed); }
  /// Takes it back. A `full_fence` must follow before the tensors change.
  void let_go() { out_.still.store(0, std::memory_order_relaxed); }
  /// Whether the peer's tensors have been as they were up to now, since its letter for `tag` came.
  /// A `full_fence` must lie between the reading of them and this.
  bool held_still(const OpTag& tag) const {
    return in_.still.load(std::memory_order_relaxed) == number_of(tag);
  }

  /// Nothing is looked for any more.
  void forget() { awaited_ = 0; }

 private:
  /// No link lives through the 2^24 views after which a number could come again.
  static std::uint64_t number_of(const OpTag& tag) {
    return (tag.generation << 40) ^ (tag.position + 1);
  }

  Letterbox& out_;
  Letterbox& in_;
  std::atomic<std::uint32_t>& peer_sleeps_;
  Doorbell& doorbell_;
  PeerWriter writer_;
  std::uint64_t awaited_ = 0;
  Letter* awaited_in_ = nullptr;
};

}  // namespace elastic::transport
