#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "timeline/event.hpp"

namespace elastic::timeline {

/// Events on their way to the thread that writes them: a bounded queue of many producers and one
/// consumer, without locks (Dmitry Vyukov's bounded queue). A push into a full ring drops the event
/// and counts it, so a slow disk delays no collective.
class EventRing {
 public:
  static constexpr std::size_t kSlots = std::size_t{1} << 14;

  EventRing() : slots_(kSlots) {
    for (std::size_t i = 0; i < kSlots; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
  }

  /// Any thread.
  void push(const Event& event) noexcept {
    std::uint64_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[at % kSlots];
      const std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn < at) {  // the consumer has not read what the slot holds
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      if (turn > at) {  // another producer has taken the slot
        at = tail_.load(std::memory_order_relaxed);
        continue;
      }
      if (!tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
      slot.event = event;
      slot.turn.store(at + 1, std::memory_order_release);
      return;
    }
  }

  /// The consumer. \returns false if the ring is empty.
  bool pop(Event& event) noexcept {
    Slot& slot = slots_[head_ % kSlots];
    if (slot.turn.load(std::memory_order_acquire) != head_ + 1) return false;
    event = slot.event;
    slot.turn.store(head_ + kSlots, std::memory_order_release);
    ++head_;
    return true;
  }

  /// Counts an event that there was no other room for.
  void drop() noexcept { dropped_.fetch_add(1, std::memory_order_relaxed); }
  /// \returns the events dropped since the last call.
  std::uint64_t take_dropped() noexcept { return dropped_.exchange(0, std::memory_order_relaxed); }

 private:
  struct Slot {
    std::atomic<std::uint64_t> turn{0};  ///< who may use it: a producer at this number, or the
                                         ///< consumer one before it
    Event event;
  };

  std::vector<Slot> slots_;
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> dropped_{0};
  alignas(64) std::uint64_t head_ = 0;  // the consumer's
};

}  // namespace elastic::timeline
