#include "runtime/commit_gate.hpp"

#include <utility>

namespace elastic::runtime {

CommitGate::CommitGate(std::function<void(std::uint64_t)> on_paused)
    : on_paused_(std::move(on_paused)) {}

Participation::Promise CommitGate::propose(std::uint64_t round, std::uint64_t at_commit) {
  const MutexLock lock(mutex_);
  const bool ahead = commits_ < at_commit;
  stop_at_ = ahead ? at_commit : 0;
  round_ = round;
  return {ahead, commits_};
}

void CommitGate::withdraw() {
  const MutexLock lock(mutex_);
  stop_at_ = 0;
}

void CommitGate::resume() {
  const MutexLock lock(mutex_);
  paused_ = false;
  changed_.notify_all();
}

void CommitGate::close(const Status& reason) {
  const MutexLock lock(mutex_);
  if (closed_.ok()) closed_ = reason;
  changed_.notify_all();
}

Status CommitGate::commit(bool& paused) {
  MutexLock lock(mutex_);
  paused = false;
  if (!closed_.ok()) return closed_;
  ++commits_;
  if (stop_at_ == 0 || commits_ < stop_at_) return {};
  paused = true;
  paused_ = true;
  paused_round_ = round_;
  stop_at_ = 0;
  const std::uint64_t round = round_;
  lock.unlock();
  on_paused_(round);
  lock.lock();
  changed_.wait_interruptibly(lock,
                              [&]() ELASTIC_REQUIRES(mutex_) { return !paused_ || !closed_.ok(); });
  return closed_;
}

bool CommitGate::paused_for(std::uint64_t round) const {
  const MutexLock lock(mutex_);
  return paused_ && paused_round_ == round;
}

std::uint64_t CommitGate::commits() const {
  const MutexLock lock(mutex_);
  return commits_;
}

void CommitGate::set_commits(std::uint64_t commits) {
  const MutexLock lock(mutex_);
  commits_ = commits;
}

}  // namespace elastic::runtime
