#include "timeline/lane_trace.hpp"

#include <utility>

#include "elastic/types.hpp"

namespace elastic::timeline {

void LaneTrace::begin(std::uint64_t position, std::uint64_t generation,
                      const transport::Fingerprint& call) noexcept {
  timed_ = is_on();
  OperationRecord record;
  record.position = position;
  record.generation = generation;
  record.kind = call.kind;
  record.tensors = tensors_ != 0 ? std::exchange(tensors_, 0) : call.tensors;
  record.text = std::exchange(text_, Texts::kNone);
  if (call.tensors == 1) record.bytes = call.count * size_of(static_cast<DType>(call.dtype));
  record.began = ticks();
  note_time(record.began);
  recorder_.begin(record);
  note_begun(record);
}

void LaneTrace::packed(std::size_t bytes) noexcept {
  if (!timed_) return;
  event_.times[Event::kPacked] = ticks();
  if (bytes > 0) event_.bytes = bytes;
}

void LaneTrace::end(Outcome outcome, int members) noexcept {
  const std::int64_t now = ticks();
  note_time(now);
  recorder_.end(outcome, now);
  if (timed_) finish(outcome, members, now);
}

void LaneTrace::note_begun(const OperationRecord& record) noexcept {
  event_ = Event{};
  event_.kind = record.kind;
  event_.lane = lane_;
  event_.eager = record.is_small;
  event_.text = record.text;
  event_.tensors = record.tensors;
  event_.position = record.position;
  event_.generation = record.generation;
  event_.bytes = record.bytes;
  event_.times[Event::kBegan] = record.began;
}

void LaneTrace::finish(Outcome outcome, int members, std::int64_t now) noexcept {
  timed_ = false;
  event_.outcome = outcome;
  event_.members = static_cast<std::uint32_t>(members);
  event_.times[Event::kEnded] = now;
  timeline_->record(event_);
}

}  // namespace elastic::timeline
