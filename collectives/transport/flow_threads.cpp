#include "collectives/transport/flow_threads.hpp"

#include <algorithm>
#include <poll.h>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "base/thread_name.hpp"
#include "collectives/transport/idle_rounds.hpp"

namespace elastic::transport {

FlowThreads::FlowThreads(std::size_t count) {
  for (std::size_t i = 1; i < count; ++i) movers_.push_back(std::make_unique<Mover>());
}

FlowThreads::~FlowThreads() {
  closing_.store(true, std::memory_order_release);
  loans_.fetch_add(1, std::memory_order_release);
  loans_.notify_all();
  for (const auto& mover : movers_) {
    if (mover->thread.joinable()) mover->thread.join();
  }
}

bool FlowThreads::valid() const {
  return owner_.valid() &&
         std::ranges::all_of(movers_, [](const auto& mover) { return mover->sleeper.valid(); });
}

/// With fewer where the process may not have so many.
void FlowThreads::start_threads() {
  if (movers_.empty() || movers_.front()->thread.joinable()) return;
  std::size_t started = 0;
  try {
    for (; started < movers_.size(); ++started) {
      movers_[started]->thread = std::thread([this, started] { loop(started); });
    }
  } catch (const std::system_error& failure) {
    log::warn("large tensors travel with {} threads instead of {} (ELASTIC_TCP_THREADS): {}",
              started + 1, count(), failure.what());
    movers_.resize(started);
  }
}

void FlowThreads::begin(std::vector<LinkPtr> links) {
  start_threads();
  {
    const MutexLock lock(mutex_);
    thrown_ = nullptr;
  }
  links_ = std::move(links);
  for (const LinkPtr& link : links_) link->share(this);
  working_.store(movers_.size(), std::memory_order_relaxed);
  stop_.store(false, std::memory_order_release);
  loans_.fetch_add(1, std::memory_order_release);
  loans_.notify_all();
}

void FlowThreads::end() noexcept {
  stop();
  for (std::size_t working = working_.load(std::memory_order_acquire); working > 0;
       working = working_.load(std::memory_order_acquire)) {
    working_.wait(working, std::memory_order_acquire);
  }
  for (const LinkPtr& link : links_) link->share(nullptr);
  links_.clear();
}

void FlowThreads::stop() noexcept {
  stop_.store(true, std::memory_order_release);
  posted();
}

void FlowThreads::posted() noexcept {
  for (const auto& mover : movers_) mover->sleeper.tell();
}

void FlowThreads::loop(std::size_t index) {
  name_this_thread("elastic-flows");
  for (std::uint64_t seen = 0;; ++seen) {
    loans_.wait(seen, std::memory_order_acquire);
    if (closing_.load(std::memory_order_acquire)) return;
    move(index);
    if (working_.fetch_sub(1, std::memory_order_acq_rel) == 1) working_.notify_all();
  }
}

/// Moves the flows of one share until the loan ends or a failure stops all.
void FlowThreads::move(std::size_t index) {
  Sleeper& sleeper = movers_[index]->sleeper;
  const FlowShare share{index + 1, count()};
  SpinBackoff backoff;
  IdleRounds rounds(backoff);
  std::vector<pollfd> watched;
  unsigned round = 0;
  for (;;) {
    // Before the look whether the loan has ended, of which the sleeper is told like of all else.
    const std::uint64_t seen = sleeper.told();
    if (stopped()) return;
    bool moved = false;
    if (!move_once(share, round++ % Link::kRoundsPerLook == 0, moved)) {
      stop();
      owner_.tell();
      return;
    }
    if (moved) {
      rounds.end();
    } else if (!rounds.look_again()) {
      watched.assign(1, sleeper.watched());
      bool idle = true;
      for (const LinkPtr& link : links_) {
        idle = link->prepare_share_wait(share, /*also_unused=*/true, watched) && idle;
      }
      if (sleeper.prepare(seen) && idle) ::poll(watched.data(), watched.size(), -1);
      sleeper.finish(watched.front());
      for (const LinkPtr& link : links_) link->finish_share_wait(share);
      rounds.slept();
      round = 0;  // one that is not in use may have ended the sleep
    }
  }
}

/// \returns false after a failure.
bool FlowThreads::move_once(const FlowShare& share, bool looks_at_all, bool& moved) try {
  for (const LinkPtr& link : links_) {
    if (!link->progress_share(share, looks_at_all, moved).ok()) return false;
  }
  return true;
} catch (...) {
  const MutexLock lock(mutex_);
  thrown_ = std::current_exception();
  return false;
}

void FlowThreads::rethrow() {
  const MutexLock lock(mutex_);
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

}  // namespace elastic::transport
