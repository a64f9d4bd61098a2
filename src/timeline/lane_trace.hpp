#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ticks.hpp"
#include "collectives/transport/frame.hpp"
#include "timeline/event.hpp"
#include "timeline/flight_recorder.hpp"
#include "timeline/timeline.hpp"

namespace elastic::timeline {

/// Records the operations of one lane: all of them in its FlightRecorder, and in the worker's
/// Timeline while that is on.
///
/// The thread that owns the lane records. Any thread may call `latest` and `note_time`.
class LaneTrace {
 public:
  /// `timeline` may be null, and outlives this.
  LaneTrace(Timeline* timeline, std::size_t lane)
      : timeline_(timeline), lane_(static_cast<std::uint8_t>(lane)) {}

  /// The operation that begins next is of `tensors` tensors, the first of which has this number in
  /// Texts.
  void name_next(std::uint32_t text, std::uint32_t tensors) {
    text_ = text;
    tensors_ = tensors;
  }

  /// Lane::run_small begins.
  void begin_small(std::uint64_t position, std::uint64_t generation, std::uint8_t kind,
                   std::size_t bytes) noexcept {
    timed_ = is_on();
    const std::int64_t began = timed_ ? ticks() : time_.load(std::memory_order_relaxed);
    recorder_.begin_small(position, generation, kind, bytes, began);
    if (!timed_) return;
    OperationRecord record;
    record.position = position;
    record.generation = generation;
    record.kind = kind;
    record.bytes = bytes;
    record.is_small = true;
    record.began = began;
    note_begun(record);
  }
  /// It is complete.
  void end_small(int members) noexcept {
    if (timed_) finish(Outcome::kDone, members, ticks());
  }

  /// An attempt at an operation begins.
  void begin(std::uint64_t position, std::uint64_t generation,
             const transport::Fingerprint& call) noexcept;
  /// Its input has been packed, `bytes` of it.
  void packed(std::size_t bytes) noexcept;
  /// The collective has ended. `on_device`: with a result in a device's memory.
  void performed(bool on_device) noexcept {
    if (!timed_) return;
    event_.times[Event::kPerformed] = ticks();
    event_.on_device = on_device;
  }
  /// The attempt has ended, also one that `begin_small` has begun.
  void end(Outcome outcome, int members) noexcept;
  /// The interrupted operation has its result from another member.
  void delivered() noexcept { recorder_.end(Outcome::kDone, ticks()); }

  /// The owner: the latest operation that the timeline has got.
  const Event& latest_event() const { return event_; }

  /// From now on small operations begin at this moment, in ticks: for a thread that knows the time.
  void note_time(std::int64_t now) noexcept { time_.store(now, std::memory_order_relaxed); }
  /// See FlightRecorder::latest.
  std::vector<OperationRecord> latest(std::uint64_t position) const {
    return recorder_.latest(position);
  }

 private:
  bool is_on() const noexcept { return timeline_ != nullptr && timeline_->on(); }
  void note_begun(const OperationRecord& record) noexcept;
  void finish(Outcome outcome, int members, std::int64_t now) noexcept;

  Timeline* const timeline_;
  const std::uint8_t lane_;
  FlightRecorder recorder_;
  std::atomic<std::int64_t> time_{ticks()};

  // The owner's.
  bool timed_ = false;  // the present operation is for the timeline, too
  Event event_;
  std::uint32_t text_ = Texts::kNone;
  std::uint32_t tensors_ = 0;  // 0: as the fingerprint says
};

}  // namespace elastic::timeline
