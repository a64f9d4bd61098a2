#include "collectives/device/stall_watch.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/thread_name.hpp"

namespace elastic::device {

namespace {

/// So that no sum of times overflows.
constexpr Milliseconds kLongest = std::chrono::hours(24 * 365);

void write_to_log(const std::string& message) {
  log::warn("{}", message);
}

std::string warning(const std::string& what, Duration lasted) {
  const auto milliseconds = std::chrono::duration_cast<Milliseconds>(lasted).count();
  return what + ", for " + std::to_string(milliseconds) +
         " ms now: what was queued there before has not come to an end, and the other ranks wait "
         "for this one";
}

}  // namespace

StallWatch::StallWatch(Milliseconds warn_after, Warn warn)
    : warn_after_(std::clamp<Milliseconds>(warn_after, Milliseconds(1), kLongest)),
      warn_(warn ? std::move(warn) : write_to_log) {}

StallWatch::~StallWatch() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

/// A thread that has slept for a wait that is over need not be woken: this one is due later.
StallWatch::Entries::iterator StallWatch::add(std::string what) {
  const TimePoint now = Clock::now();
  const MutexLock lock(mutex_);
  const auto entry = waits_.insert(waits_.end(), {std::move(what), now, now});
  if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
  if (idle_) changed_.notify_all();
  return entry;
}

void StallWatch::remove(Entries::iterator entry) {
  const MutexLock lock(mutex_);
  waits_.erase(entry);
}

void StallWatch::loop() {
  name_this_thread("elastic-watch");
  MutexLock lock(mutex_);
  while (!ending_) {
    idle_ = waits_.empty();
    if (idle_) {
      changed_.wait(lock, [&]() ELASTIC_REQUIRES(mutex_) { return ending_ || !waits_.empty(); });
      continue;
    }
    const auto next = std::min_element(
        waits_.begin(), waits_.end(),
        [](const Entry& left, const Entry& right) { return left.warned < right.warned; });
    changed_.wait_until(lock, next->warned + warn_after_,
                        [&]() ELASTIC_REQUIRES(mutex_) { return ending_; });
    if (ending_) return;
    const std::list<std::string> messages = overdue(Clock::now());
    lock.unlock();
    for (const std::string& message : messages) warn_(message);
    lock.lock();
  }
}

std::list<std::string> StallWatch::overdue(TimePoint now) {
  std::list<std::string> messages;
  for (Entry& entry : waits_) {
    if (now - entry.warned < warn_after_) continue;
    entry.warned = now;
    messages.push_back(warning(entry.what, now - entry.began));
  }
  return messages;
}

}  // namespace elastic::device
