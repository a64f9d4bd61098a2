// Stalls of the job: when the server looks for them, and what follows.
#include <algorithm>

#include "rendezvous/membership/stall_text.hpp"
#include "rendezvous/membership/state.hpp"

namespace elastic::rendezvous {
namespace {

/// Upper bound of the limits, which prevents overflow.
constexpr std::uint64_t kLongestLimitMs = std::uint64_t{1} << 40U;

/// Lowers `limit` to `other_ms`; 0 means no limit for both.
void lower(Milliseconds& limit, std::uint64_t other_ms) {
  if (other_ms == 0) return;
  const Milliseconds other(std::min(other_ms, kLongestLimitMs));
  limit = limit.count() == 0 ? other : std::min(limit, other);
}

}  // namespace

/// Looks for stalls; called on a heartbeat, once per heartbeat period. Sends warnings to the log
/// and to the members that want them, and fails the job if a stall exceeds its limit. Cost:
/// O(members * lanes) per period.
void Membership::State::look_for_stalls() {
  if (!heartbeats_can_show_stalls()) return stalls_.pause();
  std::vector<const Heartbeat*> heartbeats;
  for (const Member& member : view_.members) {
    heartbeats.push_back(&workers_.at(member.incarnation).heartbeat);
  }
  const Stalls::Limits limits = stall_limits();
  const Stalls::Verdict verdict = stalls_.look(heartbeats, limits, now_);
  for (const std::string& text : verdict.warnings) warn(text);
  if (!verdict.warnings.empty()) awaited_commit_.reset();  // the stall explains the delay
  // Not at its end: that would replace what its members wrote of it.
  if (!verdict.stall.empty()) dump(verdict.stall);
  if (!verdict.failure.empty()) return fail_stalled(verdict.failure);
  look_for_missing_commits(limits.warning);
}

/// Warns if a deferred round has waited for longer than `limit` without a committed step: the
/// program may not call State::commit. Each further warning comes after twice the time.
void Membership::State::look_for_missing_commits(Milliseconds limit) {
  // A complete round is at its boundary, and waits there for more workers.
  if (!round_ || !round_->deferred() || round_->complete() || limit.count() == 0) {
    return awaited_commit_.reset();
  }
  if (!awaited_commit_ || awaited_commit_->commits != commits_) {
    awaited_commit_ = AwaitedCommit{now_, commits_, limit};
  }
  const Duration lasted = now_ - awaited_commit_->since;
  if (lasted < awaited_commit_->next_warning) return;
  awaited_commit_->next_warning = 2 * lasted;
  warn("no step has been committed for " + seconds_text(lasted) + ", and " +
       (stopping_               ? "the job is to stop"
        : !admissible().empty() ? "a worker waits to join"
        : view_.below_minimum   ? "the job is to wait for more workers"
                                : "a worker is to leave") +
       " at the next step boundary; does the program call State::commit after each step?");
}

/// Lets all members write down their latest operations.
void Membership::State::dump(const std::string& reason) {
  std::vector<std::string> members;
  for (const Member& member : view_.members) members.push_back(member.incarnation);
  send_to_all(std::move(members), DumpRequest{reason});
}

void Membership::State::warn(const std::string& text) {
  out_.warnings.push_back(text);
  std::vector<std::string> wanted_by;
  for (const Member& member : view_.members) {
    const auto& stall = workers_.at(member.incarnation).registration.stall;
    if (stall && stall->warning_ms > 0) wanted_by.push_back(member.incarnation);
  }
  send_to_all(std::move(wanted_by), Warning{text});
}

/// Whether heartbeats can show a stall: all members are connected, in the present view, and none is
/// leaving. An immediate round is no stall and ends by itself. A deferred round may wait for a
/// stalled call.
bool Membership::State::heartbeats_can_show_stalls() const {
  if (over_ || recovery_ || any_member_said_bye() || (round_ && !round_->deferred())) return false;
  return std::all_of(view_.members.begin(), view_.members.end(), [this](const Member& member) {
    const auto found = workers_.find(member.incarnation);
    return found != workers_.end() && !is_absent(member.incarnation) &&
           found->second.heartbeat.generation == view_.generation;
  });
}

Stalls::Limits Membership::State::stall_limits() const {
  Stalls::Limits limits;
  for (const Member& member : view_.members) {
    const auto& stall = workers_.at(member.incarnation).registration.stall;
    if (!stall) continue;
    lower(limits.warning, stall->warning_ms);
    lower(limits.timeout, stall->timeout_ms);
  }
  return limits;
}

void Membership::State::fail_stalled(const std::string& text) {
  timed_out_ = true;
  fail(text + " (longer than ELASTIC_STALL_TIMEOUT_MS or elasticrun --stall-timeout-ms allows)");
}

}  // namespace elastic::rendezvous
