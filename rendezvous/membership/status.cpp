#include <algorithm>

#include "rendezvous/membership/state.hpp"

namespace elastic::rendezvous {

const char* name(Phase phase) noexcept {
  switch (phase) {
    case Phase::kForming:
      return "forming";
    case Phase::kRecovering:
      return "recovering";
    case Phase::kRunning:
      return "running";
    case Phase::kChanging:
      return "changing";
    case Phase::kDone:
      return "done";
    case Phase::kFailed:
      return "failed";
  }
  return "?";
}

Phase Membership::State::phase() const {
  if (!failure_.empty()) return Phase::kFailed;
  if (over_) return Phase::kDone;
  if (recovery_) return Phase::kRecovering;
  if (view_.generation == 0) return Phase::kForming;
  return round_ ? Phase::kChanging : Phase::kRunning;
}

StatusReply Membership::State::status(TimePoint now) const {
  StatusReply reply;
  reply.phase = name(phase());
  reply.view = view_;
  reply.min_np = options_.min_np;
  reply.max_np = options_.max_np;
  std::vector<const Worker*> waiting;
  for (const auto& [incarnation, worker] : workers_) {
    if (!is_member(incarnation)) waiting.push_back(&worker);
  }
  std::sort(waiting.begin(), waiting.end(),
            [](const Worker* a, const Worker* b) { return a->arrival < b->arrival; });
  for (const Worker* worker : waiting) {
    const Register& r = worker->registration;
    reply.joiners.push_back(
        {r.incarnation, r.label, r.pid, worker->layout.has_value(), waits_for(*worker)});
  }
  reply.view_changes = views_ == 0 ? 0 : views_ - 1;
  for (const Member& member : view_.members) {
    const Duration age = liveness_.age(member.incarnation, now);
    reply.heartbeat_age_ms.push_back(std::chrono::duration<double, std::milli>(age).count());
  }
  return reply;
}

/// The number of members for somebody who is none.
std::size_t Membership::State::rank_of(const std::string& incarnation) const {
  const auto found =
      std::find_if(view_.members.begin(), view_.members.end(),
                   [&](const Member& member) { return member.incarnation == incarnation; });
  return static_cast<std::size_t>(found - view_.members.begin());
}

bool Membership::State::is_member(const std::string& incarnation) const {
  return rank_of(incarnation) < view_.members.size();
}

/// In rank order.
std::vector<std::string> Membership::State::reachable_members() const {
  std::vector<std::string> result;
  for (const Member& member : view_.members) {
    if (workers_.contains(member.incarnation)) result.push_back(member.incarnation);
  }
  return result;
}

/// Whether some member uses run, and so comes to step boundaries.
bool Membership::State::anybody_ready() const {
  return std::any_of(view_.members.begin(), view_.members.end(), [this](const Member& member) {
    const auto found = workers_.find(member.incarnation);
    return found != workers_.end() && found->second.layout.has_value();
  });
}

bool Membership::State::anybody_said_bye() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& entry) { return entry.second.said_bye; });
}

/// Whether so many are too few to go on. At the job's end there is nothing to go on with.
bool Membership::State::starved(std::size_t members) const {
  return !ending_ && members < static_cast<std::size_t>(std::max(options_.min_np, 0));
}

std::string Membership::State::describe(const std::string& incarnation) const {
  constexpr std::size_t kShown = 8;
  std::string text = "worker " + incarnation.substr(0, kShown);
  if (incarnation.size() > kShown) text += "…";
  if (is_member(incarnation)) text += " (rank " + std::to_string(rank_of(incarnation)) + ")";
  return text;
}

TimePoint Membership::State::compute_due() const {
  if (over_) return TimePoint::max();
  TimePoint due = liveness_.deadline(now_);
  const auto consider = [&](TimePoint at) { due = std::min(due, at); };
  // A recovery may outlast it, where members are given longer to come back.
  if (view_.generation == 0 && first_registered_ &&
      *first_registered_ + options_.start_timeout > now_) {
    consider(*first_registered_ + options_.start_timeout);
  }
  if (recovery_ && recovery_->since) {
    for (const Milliseconds window : {options_.suspect_return_window, options_.return_window}) {
      if (*recovery_->since + window > now_) consider(*recovery_->since + window);
    }
  }
  if (round_ && !round_->deferred()) {
    consider(round_->started + options_.report_window + liveness_.slack(now_));
  }
  if (grace_ends_) consider(*grace_ends_);
  if (handover_until_) consider(*handover_until_);
  // Past it, enough joiners are there, and the members only have to reach the boundary.
  if (below_since_ && *below_since_ + options_.below_minimum_timeout > now_) {
    consider(*below_since_ + options_.below_minimum_timeout);
  }
  return due;
}

void Membership::State::send(const std::string& incarnation, Message message) {
  out_.actions.push_back(SendTo{incarnation, std::move(message)});
}

void Membership::State::note(const std::string& why) {
  out_.reason += (out_.reason.empty() ? "" : "; ") + why;
}

}  // namespace elastic::rendezvous
