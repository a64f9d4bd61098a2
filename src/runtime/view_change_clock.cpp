#include "runtime/view_change_clock.hpp"

#include <utility>

namespace elastic::runtime {

namespace {

/// A loss and the join of a replacement can follow within less than the time between two reports.
constexpr std::size_t kKept = 4;

}  // namespace

void ViewChangeClock::begin(TimePoint now) {
  if (generation_ == 0 || present_) return;
  present_.emplace().noticed = now;
  present_->reported = now;
}

void ViewChangeClock::notice(std::uint64_t generation) {
  const MutexLock lock(mutex_);
  if (generation >= generation_) begin(Clock::now());
}

void ViewChangeClock::report(std::uint64_t generation) {
  const MutexLock lock(mutex_);
  const TimePoint now = Clock::now();
  if (generation >= generation_) begin(now);
  if (present_) present_->reported = now;
}

void ViewChangeClock::decide(const rendezvous::View& view) {
  const MutexLock lock(mutex_);
  const TimePoint now = Clock::now();
  begin(now);
  if (!present_) return;
  present_->generation = view.generation;
  present_->cause = view.cause;
  present_->decided = now;
}

void ViewChangeClock::link() {
  const MutexLock lock(mutex_);
  if (present_) present_->linked = Clock::now();
}

void ViewChangeClock::install(std::uint64_t generation) {
  const MutexLock lock(mutex_);
  generation_ = generation;
  if (!present_) return;
  present_->installed = Clock::now();
  latest_ = *std::exchange(present_, std::nullopt);
  installed_.fetch_add(1, std::memory_order_relaxed);
}

void ViewChangeClock::resume() {
  const MutexLock lock(mutex_);
  if (latest_.generation == 0 || latest_.resumed != TimePoint{}) return;
  latest_.resumed = Clock::now();
  if (timeline_ != nullptr) timeline_->record(latest_);
  resumed_.push_back(latest_);
  if (resumed_.size() > kKept) resumed_.pop_front();
}

std::deque<ViewChange> ViewChangeClock::resumed() const {
  const MutexLock lock(mutex_);
  return resumed_;
}

ViewChange ViewChangeClock::latest() const {
  const MutexLock lock(mutex_);
  return latest_;
}

}  // namespace elastic::runtime
