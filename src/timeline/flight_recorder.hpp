#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "timeline/event.hpp"
#include "timeline/texts.hpp"

namespace elastic::timeline {

/// One attempt at an operation, as a FlightRecorder keeps it.
struct OperationRecord {
  std::uint64_t position = 0;
  std::uint64_t generation = 0;
  std::uint64_t bytes = 0;
  std::uint8_t kind = 0;  ///< transport::Fingerprint::kind
  Outcome outcome = Outcome::kOpen;
  bool is_small = false;  ///< Lane::run_small: `began` is the time of the heartbeat before it, and
                          ///< `ended` is not known, because reading a clock costs too much there
  std::uint32_t tensors = 1;
  std::uint32_t text = Texts::kNone;  ///< in Texts: the first named tensor
  std::int64_t began = 0;             ///< ticks
  std::int64_t ended = 0;             ///< ticks; 0: not known
};

/// The latest operations of a lane, in memory that is allocated once. Always on: recording costs
/// some stores into one cache line.
///
/// The thread that owns the lane records; any thread may call `latest` meanwhile.
class FlightRecorder {
 public:
  static constexpr std::size_t kKept = 1000;

  FlightRecorder() : slots_(kSlots) {}

  /// Adds an operation that begins.
  void begin(const OperationRecord& record) noexcept {
    Slot& slot = slots_[++count_ % kSlots];
    slot.serial.store(0, std::memory_order_relaxed);  // readers skip the slot
    slot.words[kPosition].store(record.position, std::memory_order_release);
    slot.words[kGeneration].store(record.generation, std::memory_order_release);
    slot.words[kShape].store(shape_of(record), std::memory_order_release);
    slot.words[kTensors].store(std::uint64_t{record.text} << 32U | record.tensors,
                               std::memory_order_release);
    slot.words[kBegan].store(static_cast<std::uint64_t>(record.began), std::memory_order_release);
    slot.words[kEnded].store(0, std::memory_order_release);
    slot.serial.store(count_, std::memory_order_release);
  }

  /// Ends the operation that began last.
  void end(Outcome outcome, std::int64_t ended) noexcept;

  /// \returns the latest operations, oldest first. `position` is the lane's: small operations before it
  /// that were not interrupted are complete, which is not recorded for each.
  std::vector<OperationRecord> latest(std::uint64_t position) const;

 private:
  static constexpr std::size_t kSlots = 1024;
  enum Word : std::size_t { kPosition, kGeneration, kShape, kTensors, kBegan, kEnded, kWords };
  static constexpr unsigned kKindShift = 8;
  static constexpr unsigned kBytesShift = 16;
  static constexpr std::uint64_t kSmall = 0x80;

  struct alignas(64) Slot {
    std::atomic<std::uint64_t> serial{0};  ///< 0: empty, or being written
    std::array<std::atomic<std::uint64_t>, kWords> words{};
  };

  static std::uint64_t shape_of(const OperationRecord& record) noexcept {
    return record.bytes << kBytesShift | std::uint64_t{record.kind} << kKindShift |
           (record.is_small ? kSmall : 0) | static_cast<std::uint64_t>(record.outcome);
  }
  static OperationRecord read(const Slot& slot);

  std::vector<Slot> slots_;
  std::uint64_t count_ = 0;  // the owner's
};

}  // namespace elastic::timeline
