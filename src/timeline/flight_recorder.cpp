#include "timeline/flight_recorder.hpp"

#include <algorithm>
#include <utility>

namespace elastic::timeline {

void FlightRecorder::end(Outcome outcome, std::int64_t ended) noexcept {
  if (count_ == 0) return;
  Slot& slot = slots_[count_ % kSlots];
  const std::uint64_t shape = slot.words[kShape].load(std::memory_order_relaxed);
  slot.words[kShape].store(
      (shape & ~std::uint64_t{kSmall - 1}) | static_cast<std::uint64_t>(outcome),
      std::memory_order_release);
  slot.words[kEnded].store(static_cast<std::uint64_t>(ended), std::memory_order_release);
}

OperationRecord FlightRecorder::read(const Slot& slot) {
  const auto word = [&](Word which) { return slot.words[which].load(std::memory_order_acquire); };
  const std::uint64_t shape = word(kShape);
  const std::uint64_t tensors = word(kTensors);
  OperationRecord record;
  record.position = word(kPosition);
  record.generation = word(kGeneration);
  record.bytes = shape >> kBytesShift;
  record.kind = static_cast<std::uint8_t>(shape >> kKindShift);
  record.is_small = (shape & kSmall) != 0;
  record.outcome = static_cast<Outcome>(shape & (kSmall - 1));
  record.tensors = static_cast<std::uint32_t>(tensors);
  record.text = static_cast<std::uint32_t>(tensors >> 32U);
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
    if (record.is_small && record.outcome == Outcome::kOpen && record.position < position) {
      record.outcome = Outcome::kDone;
    }
    records.push_back(record);
  }
  return records;
}

}  // namespace elastic::timeline
