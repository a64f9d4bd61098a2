#include "timeline/timeline.hpp"

#include <utility>

namespace elastic::timeline {

namespace {

std::int64_t nanoseconds(TimePoint moment) {
  return std::chrono::nanoseconds(moment.time_since_epoch()).count();
}

Event member_event(std::uint32_t rank, std::uint32_t members, std::uint64_t generation) {
  Event event;
  event.type = Event::Type::kMember;
  event.rank = rank;
  event.members = members;
  event.generation = generation;
  event.times[Event::kAt] = nanoseconds(Clock::now());
  return event;
}

}  // namespace

Status Timeline::start(const TraceFile& file) {
  const MutexLock lock(mutex_);
  if (writer_) {
    return Status(Code::kInvalidArgument, "a timeline is being written to " + writer_->path() +
                                              " already; stop it before you start another one");
  }
  if (!own_ring_) own_ring_ = std::make_unique<EventRing>();
  auto writer = TraceWriter::create(file, *own_ring_, texts_);
  if (!writer.ok()) return writer.status();
  writer_ = std::move(writer).value();
  if (members_ > 0) own_ring_->push(member_event(rank_, members_, generation_));
  ring_.store(own_ring_.get(), std::memory_order_release);
  on_.store(true, std::memory_order_relaxed);
  return {};
}

void Timeline::stop() {
  on_.store(false, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  writer_.reset();
}

std::string Timeline::path() const {
  const MutexLock lock(mutex_);
  return writer_ ? writer_->path() : std::string();
}

void Timeline::record_tensor(std::string_view name, const TensorTimes& times, Event event) {
  event.type = Event::Type::kTensor;
  event.text = texts_.number_of(name);
  event.times = {};
  event.times[Event::kSubmitted] = nanoseconds(times.submitted);
  event.times[Event::kOrdered] = nanoseconds(times.ordered);
  event.times[Event::kRun] = nanoseconds(times.run);
  event.times[Event::kComplete] = nanoseconds(times.complete);
  record(event);
}

void Timeline::record(const ViewChange& change) {
  if (!on()) return;
  Event event;
  event.type = Event::Type::kViewChange;
  event.text = texts_.number_of(change.cause);
  event.generation = change.generation;
  event.times = {nanoseconds(change.noticed),   nanoseconds(change.reported),
                 nanoseconds(change.decided),   nanoseconds(change.linked),
                 nanoseconds(change.installed), nanoseconds(change.resumed)};
  record(event);
}

void Timeline::record_member(int rank, int members, std::uint64_t generation) {
  const MutexLock lock(mutex_);
  rank_ = static_cast<std::uint32_t>(rank);
  members_ = static_cast<std::uint32_t>(members);
  generation_ = generation;
  if (on()) record(member_event(rank_, members_, generation_));
}

void Timeline::record_commit(std::uint64_t commits) {
  if (!on()) return;
  Event event;
  event.type = Event::Type::kCommit;
  event.position = commits;
  event.times[Event::kAt] = nanoseconds(Clock::now());
  record(event);
}

}  // namespace elastic::timeline
