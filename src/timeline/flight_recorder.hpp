#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "timeline/event.hpp"
#include "timeline/texts.hpp"

namespace elastic::timeline {

/// One attempt at an operation, as a FlightRecorder keeps it, or a run of small ones.
struct OperationRecord {
  std::uint64_t position = 0;
  std::uint64_t last = 0;  ///< position of the last operation of the run; otherwise `position`
  std::uint64_t generation = 0;
  std::uint64_t bytes = 0;
  std::uint8_t kind = 0;  ///< transport::Fingerprint::kind
  Outcome outcome = Outcome::kOpen;
  /// Lane::run_small: `began` is the time of the heartbeat before it, and `ended` is not known,
  /// because reading a clock costs too much there.
  bool is_small = false;
  std::uint32_t tensors = 1;
  std::uint32_t text = Texts::kNone;  ///< in Texts: the first named tensor
  std::int64_t began = 0;             ///< ticks
  std::int64_t ended = 0;             ///< ticks; 0: not known
};

/// The latest operations of a lane, in memory that is allocated once. Always on. Small operations
/// of the same kind and size that follow each other share an entry, so that one more costs a store.
///
/// The thread that owns the lane records; any thread may call `latest` meanwhile.
class FlightRecorder {
 public:
  static constexpr std::size_t kKept = 1000;

  FlightRecorder() : slots_(kSlots) {}

  /// Adds an operation that begins, which is no small one.
  void begin(const OperationRecord& record) noexcept;

  /// Adds a small operation that begins. `began`: ticks.
  void begin_small(std::uint64_t position, std::uint64_t generation, std::uint8_t kind,
                   std::uint64_t bytes, std::int64_t began) noexcept {
    const std::uint64_t shape = bytes << kBytesShift | std::uint64_t{kind} << kKindShift | kSmall;
    if (shape == run_shape_ && generation == run_generation_ && position == run_last_ + 1) {
      run_last_ = position;
      slots_[count_ % kSlots].words[kMore].store(position, std::memory_order_release);
      return;
    }
    begin_run(position, generation, shape, began);
  }

  /// Ends the operation that began last.
  void end(Outcome outcome, std::int64_t ended) noexcept;

  /// \returns the latest operations, oldest first. `position` is the lane's: small operations before it
  /// that were not interrupted are complete, which is not recorded for each.
  std::vector<OperationRecord> latest(std::uint64_t position) const;

 private:
  static constexpr std::size_t kSlots = 1024;
  /// kMore: of a small operation the last position of its run, otherwise text and tensors.
  enum Word : std::size_t { kPosition, kGeneration, kShape, kMore, kBegan, kEnded, kWords };
  using Words = std::array<std::uint64_t, kWords>;
  static constexpr unsigned kKindShift = 8;
  static constexpr unsigned kBytesShift = 16;
  static constexpr std::uint64_t kSmall = 0x80;
  static constexpr std::uint64_t kNoRun = 0;  ///< as a shape

  struct alignas(64) Slot {
    std::atomic<std::uint64_t> serial{0};  ///< 0: empty, or being written
    std::array<std::atomic<std::uint64_t>, kWords> words{};
  };

  void begin_run(std::uint64_t position, std::uint64_t generation, std::uint64_t shape,
                 std::int64_t began) noexcept;
  void add(const Words& words) noexcept;
  static OperationRecord read(const Slot& slot);

  std::vector<Slot> slots_;

  // The owner's.
  std::uint64_t count_ = 0;
  std::uint64_t run_shape_ = kNoRun;  // of the small operations to which one more can be added
  std::uint64_t run_generation_ = 0;
  std::uint64_t run_last_ = 0;
};

}  // namespace elastic::timeline
