// Questions about the state of a Membership, by its rules and by `elasticrun ctl status`.
#include <algorithm>
#include <numeric>

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

const Member* Membership::State::member(const std::string& incarnation) const {
  const auto found = ranks_.find(incarnation);
  return found == ranks_.end() ? nullptr : &view_.members[found->second];
}

bool Membership::State::leaves(const std::string& incarnation) const {
  const auto found = ranks_.find(incarnation);
  const Worker* its = found == ranks_.end() ? nullptr : by_rank_[found->second];
  return its == nullptr || its->removing || its->leaving;
}

std::size_t Membership::State::expected_workers() const {
  if (view_.generation != 0) return view_.members.size();
  if (recovery_ && recovery_->journaled) return recovery_->journaled->members.size();
  return static_cast<std::size_t>(first_view_size());
}

StatusReply Membership::State::status(TimePoint now) const {
  StatusReply reply;
  reply.phase = name(phase());
  reply.view = view_;
  reply.min_np = options_.min_np;
  reply.max_np = options_.max_np;
  reply.initial_np = first_view_size();
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
  reply.joinable = joinable();
  for (const auto& [label, departed] : departed_) reply.departed.push_back(departed);
  reply.view_changes = view_changes_;
  for (const Member& member : view_.members) {
    const auto absence = absences_.find(member.incarnation);
    const Duration age = absence != absences_.end() ? now - absence->second.since
                                                    : liveness_.age(member.incarnation, now);
    reply.heartbeat_age_ms.push_back(std::chrono::duration<double, std::milli>(age).count());
    reply.progress.push_back(progress_of(member));
  }
  reply.commits = std::max(commits_, view_.commits);
  reply.steps_per_second = steps_per_second(now);
  for (const std::string& member : remaining_members()) {
    const Heartbeat& its = workers_.at(member).heartbeat;
    if (its.generation == view_.generation) reply.slowest = std::max(reply.slowest, its.slowest);
  }
  return reply;
}

/// Before the workers of a job that is over are forgotten.
void Membership::State::keep_last_progress() {
  for (const Member& member : view_.members) {
    if (!workers_.contains(member.incarnation)) continue;
    StatusReply::Progress last = progress_of(member);
    last.connected = false;
    last_progress_.insert_or_assign(member.incarnation, std::move(last));
  }
}

/// The progress that the member last reported. The view says which members had the state when it
/// was decided.
StatusReply::Progress Membership::State::progress_of(const Member& member) const {
  const auto found = workers_.find(member.incarnation);
  if (found == workers_.end()) {
    const auto last = last_progress_.find(member.incarnation);
    return last != last_progress_.end() ? last->second
                                        : StatusReply::Progress{0, 0, member.synced, false, {}};
  }
  const Heartbeat& its = found->second.heartbeat;
  return {its.commits,
          std::accumulate(its.positions.begin(), its.positions.end(), std::uint64_t{0}),
          member.synced || its.synced, !is_absent(member.incarnation), found->second.figures};
}

/// The number of members if `incarnation` is not a member.
std::size_t Membership::State::rank_of(const std::string& incarnation) const {
  const auto found = ranks_.find(incarnation);
  return found != ranks_.end() ? found->second : view_.members.size();
}

bool Membership::State::is_member(const std::string& incarnation) const {
  return ranks_.contains(incarnation);
}

/// The members that are not gone, in rank order. Includes disconnected ones.
std::vector<std::string> Membership::State::remaining_members() const {
  std::vector<std::string> result;
  for (std::size_t rank = 0; rank < by_rank_.size(); ++rank) {
    if (by_rank_[rank] != nullptr) result.push_back(view_.members[rank].incarnation);
  }
  return result;
}

std::size_t Membership::State::count_remaining() const {
  return by_rank_.size() -
         static_cast<std::size_t>(std::count(by_rank_.begin(), by_rank_.end(), nullptr));
}

/// Whether some member is in `run`, and thus reaches step boundaries.
bool Membership::State::any_member_ready() const {
  return any_remaining([](const Worker& worker) { return worker.layout.has_value(); });
}

/// Whether no member reaches a step boundary. Not where one that has come back may: it says so a
/// moment after it has registered.
bool Membership::State::without_boundaries() const {
  return !any_member_ready() && !any_remaining([this](const Worker& worker) {
    return worker.untold && !is_absent(worker.registration.incarnation);
  });
}

bool Membership::State::any_member_said_bye() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& entry) { return entry.second.said_bye; });
}

/// Whether `members` workers are too few to go on. At the job's end there is no need to go on.
bool Membership::State::starved(std::size_t members) const {
  return !ending_ && members < static_cast<std::size_t>(std::max(options_.min_np, 0));
}

/// Where the program uses `run`, the operations before the first commit only give out the state.
bool Membership::State::has_made_a_step() const {
  return layout_ ? commits_ > 0 : !nothing_done();
}

/// Whether neither an operation nor a step has been completed, as far as reports say.
bool Membership::State::nothing_done() const {
  return commits_ == 0 && std::all_of(view_.lanes.begin(), view_.lanes.end(),
                                      [](const LaneDecision& lane) { return lane.position == 0; });
}

/// Names a member in messages to users.
std::string Membership::State::rank_name(const std::string& incarnation) const {
  return "rank " + std::to_string(rank_of(incarnation));
}

std::string Membership::State::describe(const std::string& incarnation) const {
  constexpr std::size_t kShown = 8;
  std::string text = "worker " + incarnation.substr(0, kShown);
  if (incarnation.size() > kShown) text += "…";
  if (is_member(incarnation)) text += " (rank " + std::to_string(rank_of(incarnation)) + ")";
  return text;
}

TimePoint Membership::State::compute_due() {
  if (over_) return TimePoint::max();
  TimePoint due = liveness_.deadline(now_);
  const auto consider = [&](TimePoint at) { due = std::min(due, at); };
  // A recovery may last longer, if members have more time to come back.
  if (view_.generation == 0 && first_registered_ &&
      *first_registered_ + options_.start_timeout > now_) {
    consider(*first_registered_ + options_.start_timeout);
  }
  if (recovery_ && recovery_->since) {
    for (const Milliseconds window : {options_.suspect_return_window, return_window()}) {
      if (*recovery_->since + window > now_) consider(*recovery_->since + window);
    }
  }
  if (round_ && !round_->deferred()) {
    // No report is late before this time; only then it matters which of them are.
    const TimePoint first = round_->started + report_window() + liveness_.slack(now_);
    if (first > now_) {
      consider(first);
    } else {
      for (const std::string& member : round_->expected) consider(report_due(member));
    }
  }
  for (const auto& [member, absence] : absences_) consider(awaited_until(absence));
  if (grace_ends_) consider(*grace_ends_);
  if (handover_until_) consider(*handover_until_);
  // After that time, enough joiners are present, and the members only have to reach the boundary.
  if (below_since_ && *below_since_ + options_.below_minimum_timeout > now_) {
    consider(*below_since_ + options_.below_minimum_timeout);
  }
  return due;
}

void Membership::State::send(const std::string& incarnation, Message message) {
  send_to_all({incarnation}, std::move(message));
}

/// To those that are connected.
void Membership::State::send_to_all(std::vector<std::string> incarnations, Message message) {
  std::erase_if(incarnations, [this](const std::string& one) { return is_absent(one); });
  if (incarnations.empty()) return;
  out_.actions.push_back(SendTo{std::move(incarnations), std::move(message)});
}

void Membership::State::log_reason(const std::string& why) {
  out_.reason += (out_.reason.empty() ? "" : "; ") + why;
}

}  // namespace elastic::rendezvous
