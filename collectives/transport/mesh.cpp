#include "collectives/transport/mesh.hpp"

#include <algorithm>
#include <poll.h>
#include <utility>

#include "base/clock.hpp"
#include "base/interrupt.hpp"
#include "collectives/transport/idle_rounds.hpp"

namespace elastic::transport {

namespace {

/// How long a thread sleeps before it looks whether the links still work. A thread that is woken
/// earlier pays nothing for that.
constexpr Milliseconds kLookEvery{100};

}  // namespace

Mesh::Mesh(int rank, std::vector<LinkPtr> links, std::shared_ptr<EventFd> abort_event,
           std::shared_ptr<LinkSource> source, const ThreadUse& threads)
    : rank_(rank),
      links_(links.size()),
      source_(std::move(source)),
      aborted_(std::make_shared<std::atomic<bool>>(false)),
      abort_event_(std::move(abort_event)),
      thread_use_(threads) {
  abort_event_->clear();
  for (std::size_t peer = 0; peer < links.size(); ++peer) {
    if (links[peer]) add(static_cast<int>(peer), std::move(links[peer]));
  }
}

Mesh::Mesh(Mesh& whole, std::span<const int> ranks)
    : rank_(static_cast<int>(std::ranges::find(ranks, whole.rank_) - ranks.begin())),
      links_(ranks.size()),
      aborted_(whole.aborted_),
      abort_event_(whole.abort_event_) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    links_[i] = whole.links_[static_cast<std::size_t>(ranks[i])];
    if (links_[i]) linked_.push_back(links_[i]);
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

Status Mesh::check() const {
  if (aborted()) return Status(Code::kAborted, "the view is being changed", -1);
  if (lent() && threads_->stopped()) return Status(Code::kPeerLost, "a thread met a failure", -1);
  return {};
}

Status Mesh::progress(bool& moved) {
  if (Status status = check(); !status.ok()) return status;
  for (const LinkPtr& link : linked_) {
    if (Status status = link->progress(moved); !status.ok()) return status;
  }
  return {};
}

/// `progress`, in most rounds of those links only that an operation has messages on. Over the
/// others the loss of a peer may show itself first, and messages for later come.
Status Mesh::progress_posted(bool& moved) {
  if (++rounds_ >= kRoundsPerLook) {
    rounds_ = 0;
    return progress(moved);
  }
  if (Status status = check(); !status.ok()) return status;
  for (const LinkPtr& link : linked_) {
    if (link->complete()) continue;
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

Status Mesh::run_until(const std::function<bool()>& done, std::size_t bytes) {
  if (thread_use_.count > 1 && bytes >= thread_use_.from_bytes) {
    if (std::vector<LinkPtr> several = links_to_lend(); !several.empty() && has_threads()) {
      const Status status = run_shared(done, std::move(several));
      // A failure on a link that was not lent has broken it, and is not found again.
      const bool broken =
          std::ranges::any_of(linked_, [](const auto& link) { return link->broken(); });
      if (status.ok() || status.code() == Code::kAborted || broken) return status;
    }
  }
  return run_rounds(done);  // from the beginning, or from where a failure has stopped the threads
}

Status Mesh::run_shared(const std::function<bool()>& done, std::vector<LinkPtr> links) {
  Status status;
  {
    const FlowThreads::Loan loan(*threads_, std::move(links));
    status = run_rounds(done);
  }
  threads_->rethrow();
  return status;
}

/// They take descriptors, which a worker without such links may need for others. Where none are
/// left now, the owner moves all flows, and tries again in the next operation.
bool Mesh::has_threads() {
  if (threads_ == nullptr) threads_ = std::make_unique<FlowThreads>(thread_use_.count);
  if (!threads_->valid()) threads_.reset();
  return threads_ != nullptr;
}

/// The links whose messages go over several flows.
std::vector<LinkPtr> Mesh::links_to_lend() const {
  std::vector<LinkPtr> several;
  std::ranges::copy_if(linked_, std::back_inserter(several),
                       [](const LinkPtr& link) { return link->flows_in_use() > 1; });
  return several;
}

Status Mesh::run_rounds(const std::function<bool()>& done) {
  IdleRounds rounds(backoff_);
  for (;;) {
    if (lent()) told_ = threads_->owner().told();
    if (done()) break;
    bool moved = false;
    if (Status status = progress_posted(moved); !status.ok()) {
      // A peer may be done and gone: its last message and its end arrive in one round.
      return status.code() == Code::kPeerLost && done() ? Status() : status;
    }
    if (moved) {
      rounds.end();
    } else if (!rounds.look_again()) {
      // Before a sleep, in case a link waits for a further look, and after it: any may have ended
      // it.
      if (std::exchange(rounds_, kRoundsPerLook) != 0) continue;
      if (Status status = wait(); !status.ok()) return status;
      rounds.slept();
    }
  }
  rounds.end();
  return {};
}

Status Mesh::wait(int also_fd) {
  if (aborted()) return Status(Code::kAborted, "the view is being changed", -1);
  watched_.clear();
  watched_.push_back({abort_event_->fd(), POLLIN, 0});
  if (also_fd >= 0) watched_.push_back({also_fd, POLLIN, 0});
  const std::size_t of_threads = watched_.size();
  bool idle = true;
  if (lent()) {
    watched_.push_back(threads_->owner().watched());
    idle = threads_->owner().prepare(told_);
  }
  for (const LinkPtr& link : linked_) idle = link->prepare_wait(watched_) && idle;
  const Status slept = idle ? sleep() : Status();
  if (lent()) threads_->owner().finish(watched_[of_threads]);
  for (const LinkPtr& link : linked_) link->finish_wait(watched_);
  if (!slept.ok()) return slept;
  // Before a look at what it was set for. That may have been seen already, or be of an earlier
  // mesh: an event that stayed set would end every later sleep.
  if (watched_.front().revents != 0) abort_event_->clear();
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
  aborted_->store(true, std::memory_order_release);
  abort_event_->set();
}

}  // namespace elastic::transport
