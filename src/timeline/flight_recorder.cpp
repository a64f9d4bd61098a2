#include "timeline/flight_recorder.hpp"

#include <algorithm>
#include <utility>

namespace elastic::timeline {

void FlightRecorder::add(const Words& words) noexcept {
  Slot& slot = slots_[++count_ % kSlots];
  slot.serial.store(0, std::memory_order_relaxed);  // readers skip the slot
  for (std::size_t i = 0; i < kWords; ++i) {
    slot.words[i].store(words[i], std::memory_order_release);
  }
  slot.serial.store(count_, std::memory_order_release);
}

void FlightRecorder::begin(const OperationRecord& record) noexcept {
  run_shape_ = kNoRun;
  add({record.position, record.generation,
       record.bytes << kBytesShift | std::uint64_t{record.kind} << kKindShift |
           static_cast<std::uint64_t>(record.outcome),
       std::uint64_t{record.text} << 32U | record.tensors, static_cast<std::uint64_t>(record.began),
       0});
}

void FlightRecorder::begin_run(std::uint64_t position, std::uint64_t generation,
                               std::uint64_t shape, std::int64_t began) noexcept {
  run_shape_ = shape;
  run_generation_ = generation;
  run_last_ = position;
  add({position, generation, shape, position, static_cast<std::uint64_t>(began), 0});
}

/// A small operation that needs an end of its own leaves the run.
void FlightRecorder::end(Outcome outcome, std::int64_t ended) noexcept {
  if (count_ == 0) return;
  if (run_shape_ != kNoRun) {
    Slot& run = slots_[count_ % kSlots];
    if (run.words[kPosition].load(std::memory_order_relaxed) != run_last_) {
      run.words[kMore].store(run_last_ - 1, std::memory_order_release);
      begin_run(run_last_, run_generation_, run_shape_,
                static_cast<std::int64_t>(run.words[kBegan].load(std::memory_order_relaxed)));
    }
    run_shape_ = kNoRun;
  }
  Slot& slot = slots_[count_ % kSlots];
  const std::uint64_t shape = slot.words[kShape].load(std::memory_order_relaxed);
  slot.words[kShape].store((shape & ~(kSmall - 1)) | static_cast<std::uint64_t>(outcome),
                           std::memory_order_release);
  slot.words[kEnded].store(static_cast<std::uint64_t>(ended), std::memory_order_release);
}

OperationRecord FlightRecorder::read(const Slot& slot) {
  const auto word = [&](Word which) { return slot.words[which].load(std::memory_order_acquire); };
  const std::uint64_t shape = word(kShape);
  const std::uint64_t more = word(kMore);
  OperationRecord record;
  record.position = record.last = word(kPosition);
  record.generation = word(kGeneration);
  record.bytes = shape >> kBytesShift;
  record.kind = static_cast<std::uint8_t>(shape >> kKindShift);
  record.is_small = (shape & kSmall) != 0;
  record.outcome = static_cast<Outcome>(shape & (kSmall - 1));
  if (record.is_small) {
    record.last = more;
  } else {
    record.tensors = static_cast<std::uint32_t>(more);
    record.text = static_cast<std::uint32_t>(more >> 32U);
  }
  record.began = static_cast<std::int64_t>(word(kBegan));
  record.ended = static_cast<std::int64_t>(word(kEnded));
  return record;
}

std::vector<OperationRecord> FlightRecorder::latest(std::uint64_t position) const {
  std::vector<std::pair<std::uint64_t, OperationRecord>> found;
  for (const Slot& slot : slots_) {
    const std::uint64_t serial = slot.serial.load(std::memory_order_acquire);
    if (serial == 0) continue;
    const OperationRecord record = read(slot);
    if (slot.serial.load(std::memory_order_relaxed) != serial) continue;  // overwritten meanwhile
    found.emplace_back(serial, record);
  }
  std::ranges::sort(found, {}, &std::pair<std::uint64_t, OperationRecord>::first);
  if (found.size() > kKept) found.erase(found.begin(), found.end() - kKept);
  std::vector<OperationRecord> records;
  for (auto& [serial, record] : found) {
    if (record.is_small && record.outcome == Outcome::kOpen && record.last < position) {
      record.outcome = Outcome::kDone;
    }
    records.push_back(record);
  }
  return records;
}

}  // namespace elastic::timeline
