#include "collectives/transport/mesh.hpp"

#include <algorithm>
#include <poll.h>
#include <sched.h>
#include <utility>

#include "base/clock.hpp"
#include "base/interrupt.hpp"

namespace elastic::transport {

namespace {

/// How long a thread sleeps before it looks whether the links still work. A thread that is woken
/// earlier pays nothing for that.
constexpr Milliseconds kLookEvery{100};

}  // namespace

Mesh::Mesh(int rank, std::vector<LinkPtr> links, std::shared_ptr<EventFd> abort_event,
           std::shared_ptr<LinkSource> source)
    : rank_(rank),
      links_(links.size()),
      source_(std::move(source)),
      abort_event_(std::move(abort_event)) {
  abort_event_->clear();
  for (std::size_t peer = 0; peer < links.size(); ++peer) {
    if (links[peer]) add(static_cast<int>(peer), std::move(links[peer]));
  }
}

void Mesh::add(int rank, LinkPtr link) {
  link->set_peer(rank);
  linked_.push_back(link);
  links_[static_cast<std::size_t>(rank)] = std::move(link);
}

void Mesh::begin(const OpTag& tag, const Fingerprint& fingerprint) {
  tag_ = tag;
  fingerprint_ = fingerprint;
  for (const LinkPtr& link : linked_) link->begin(tag, fingerprint);
}

void Mesh::abandon() {
  for (const LinkPtr& link : linked_) link->abandon();
}

Status Mesh::require(std::span<const int> ranks) {
  const auto missing = [this](int rank) { return rank != rank_ && !has_link(rank); };
  for (const int rank : ranks) {
    if (missing(rank)) request(rank);
  }
  while (std::ranges::any_of(ranks, missing)) {
    if (Status status = wait(); !status.ok()) return status;
    bool moved = false;
    if (Status status = progress(moved); !status.ok()) return status;
  }
  return {};
}

void Mesh::request(int rank) {
  if (std::ranges::find(requested_, rank) != requested_.end()) return;
  requested_.push_back(rank);
  source_->request(rank, [rank, to = arrivals_, wake = abort_event_](Result<LinkPtr> link) {
    {
      const MutexLock lock(to->mutex);
      to->arrived.emplace_back(rank, std::move(link));
    }
    wake->set();
  });
}

/// Takes the links that have arrived into the operation.
Status Mesh::take_arrivals() {
  abort_event_->clear();  // `aborted_` says whether it was for that
  std::vector<std::pair<int, Result<LinkPtr>>> arrived;
  {
    const MutexLock lock(arrivals_->mutex);
    arrived.swap(arrivals_->arrived);
  }
  Status failure;
  for (auto& [rank, link] : arrived) {
    std::erase(requested_, rank);
    if (!link.ok()) {
      failure = Status(Code::kPeerLost, "no link: " + link.status().message(), rank);
      continue;
    }
    add(rank, std::move(link).value());
    linked_.back()->begin(tag_, fingerprint_);
  }
  return failure;
}

Status Mesh::progress(bool& moved) {
  if (aborted()) return Status(Code::kAborted, "the view is being changed", -1);
  for (const LinkPtr& link : linked_) {
    if (Status status = link->progress(moved); !status.ok()) return status;
  }
  return {};
}

Status Mesh::progress_and_check_peers() {
  constexpr unsigned kRoundsPerCheck = 64;
  bool moved = false;
  if (Status status = progress(moved); !status.ok()) return status;
  if (looks_++ % kRoundsPerCheck != 0) return {};
  for (const LinkPtr& link : linked_) {
    if (!link->hung_up()) continue;
    return Status(Code::kPeerLost, link->peer_name() + ": the connection is closed", link->peer());
  }
  return {};
}

Status Mesh::run_until(const std::function<bool()>& done) {
  int idle = 0;
  TimePoint spin_end;
  while (!done()) {
    bool moved = false;
    if (Status status = progress(moved); !status.ok()) {
      // A peer may be done and gone: its last message and its end arrive in one round.
      return status.code() == Code::kPeerLost && done() ? Status() : status;
    }
    if (moved) {
      if (std::exchange(idle, 0) > 0) backoff_.waited();
      continue;
    }
    if (++idle == 1) spin_end = migration_spin_end();
    if (idle <= backoff_.spins() || Clock::now() < spin_end) continue;
    if (idle <= backoff_.spins() + backoff_.yields()) {
      yield();
      continue;
    }
    if (Status status = wait(); !status.ok()) return status;
    backoff_.waited(/*slept=*/true);
    idle = 0;
  }
  if (idle > 0) backoff_.waited();
  return {};
}

void Mesh::yield() {
  const TimePoint before = Clock::now();
  ::sched_yield();
  backoff_.yielded(Clock::now() - before);
}

Status Mesh::wait(int also_fd) {
  if (aborted()) return Status(Code::kAborted, "the view is being changed", -1);
  watched_.clear();
  watched_.push_back({abort_event_->fd(), POLLIN, 0});
  if (also_fd >= 0) watched_.push_back({also_fd, POLLIN, 0});
  bool idle = true;
  for (const LinkPtr& link : linked_) idle = link->prepare_wait(watched_) && idle;
  const Status slept = idle ? sleep() : Status();
  for (const LinkPtr& link : linked_) link->finish_wait(watched_);
  if (!slept.ok()) return slept;
  if (aborted()) return Status(Code::kAborted, "the view is being changed", -1);
  return requested_.empty() ? Status() : take_arrivals();
}

/// Sleeps in poll(2) on what is watched. Wakes up in between to look at the links for as long as
/// one has something on the way that may have been lost.
Status Mesh::sleep() {
  auto limit = static_cast<int>(kLookEvery.count());
  const int longest = has_interrupt_check() ? static_cast<int>(kInterruptCheckEvery.count()) : -1;
  for (;;) {
    const int ready = ::poll(watched_.data(), watched_.size(), limit);
    if (ready > 0) return {};
    check_interrupt();
    if (ready < 0) return {};  // by a signal
    const TimePoint now = Clock::now();
    bool again = false;
    for (const LinkPtr& link : linked_) {
      link->watch_idle(watched_);
      const Result<bool> looked = link->look(now);
      if (!looked.ok()) return looked.status();
      again = again || looked.value();
    }
    if (!again) limit = longest;
  }
}

void Mesh::abort() noexcept {
  aborted_.store(true, std::memory_order_release);
  abort_event_->set();
}

}  // namespace elastic::transport
