#include "runtime/membership_status.hpp"

#include <utility>

#include "runtime/farewell_wait.hpp"

namespace elastic::runtime {

namespace {

/// The client gives up at the same time as the wait for it. This further wait lets it give its
/// reason.
constexpr Milliseconds kLastWord{500};
/// How long `check` waits for an absent server: a checkpoint does not depend on it.
constexpr Milliseconds kServerAbsence{3000};
/// Number of heartbeat periods. A process that has sent a heartbeat within them was not paused for
/// long.
constexpr int kFreshHeartbeats = 3;

}  // namespace

void MembershipStatus::on_welcome(const rendezvous::Welcome& welcome) {
  {
    const MutexLock lock(mutex_);
    welcomed_ = true;
    connected_ = true;
    joining_ = welcome.joining;
    heartbeat_period_ = Milliseconds(welcome.heartbeat_ms);
    last_heartbeat_ = Clock::now();
  }
  changed_.notify_all();
}

void MembershipStatus::on_heartbeat() {
  {
    const MutexLock lock(mutex_);
    const TimePoint now = Clock::now();
    ++heartbeats_;
    if (now - last_heartbeat_ > kFreshHeartbeats * heartbeat_period_)
      all_read_from_ = heartbeats_ + 1;
    last_heartbeat_ = now;
  }
  changed_.notify_all();
}

void MembershipStatus::on_disconnected() {
  {
    const MutexLock lock(mutex_);
    connected_ = false;
  }
  changed_.notify_all();
}

void MembershipStatus::on_farewell() {
  {
    const MutexLock lock(mutex_);
    farewell_ = true;
  }
  changed_.notify_all();
}

void MembershipStatus::set_view(std::shared_ptr<const ViewSummary> view) {
  {
    const MutexLock lock(mutex_);
    view_ = std::move(view);
    if (!roster_) roster_ = std::make_shared<const Roster>(roster_of(*view_->members, 0));
    slowest_ = -1;  // ranks name other workers now
  }
  changed_.notify_all();
}

void MembershipStatus::end(const Status& reason) {
  {
    const MutexLock lock(mutex_);
    if (ended_.ok()) ended_ = reason;
  }
  changed_.notify_all();
}

bool MembershipStatus::leave(const Status& reason) {
  const MutexLock lock(mutex_);
  if (!ended_.ok()) return false;
  ended_ = reason;
  left_ = true;
  return true;
}

Result<bool> MembershipStatus::wait_until_welcome(Milliseconds limit, const std::string& server) {
  MutexLock lock(mutex_);
  const bool in_time = changed_.wait_interruptibly_until(
      lock, Clock::now() + limit,
      [&]() ELASTIC_REQUIRES(mutex_) { return !ended_.ok() || view_ || (welcomed_ && joining_); });
  if (!in_time && !welcomed_) {
    changed_.wait_for(lock, kLastWord, [&]() ELASTIC_REQUIRES(mutex_) { return !ended_.ok(); });
  }
  if (!ended_.ok()) return ended_;
  if (in_time) return view_ != nullptr;
  const std::string period = std::to_string(limit.count()) + " ms";
  if (welcomed_) {
    return Status(Code::kTimeout, "the job did not form within " + period +
                                      ": too few workers came (ELASTIC_INIT_TIMEOUT_MS)");
  }
  return Status(Code::kUnavailable,
                "the rendezvous server at " + server + " did not answer within " + period);
}

Status MembershipStatus::check() {
  MutexLock lock(mutex_);
  const bool fresh = Clock::now() - last_heartbeat_ <= kFreshHeartbeats * heartbeat_period_ &&
                     heartbeats_ >= all_read_from_;
  if (!ended_.ok() || !connected_ || fresh) return ended_;
  // After a pause of the process, its first heartbeat may come before the control thread has read
  // the pending messages. The second one comes after.
  const std::uint64_t enough = heartbeats_ + 2;
  changed_.wait_for(lock, kServerAbsence, [&]() ELASTIC_REQUIRES(mutex_) {
    return !ended_.ok() || heartbeats_ >= enough;
  });
  return ended_;
}

Status MembershipStatus::wait_until_member() {
  MutexLock lock(mutex_);
  changed_.wait_interruptibly(lock,
                              [&]() ELASTIC_REQUIRES(mutex_) { return !ended_.ok() || view_; });
  return ended_;
}

Status MembershipStatus::wait_until_ended(Milliseconds most) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, most, [&]() ELASTIC_REQUIRES(mutex_) { return !ended_.ok(); });
  return ended_;
}

void MembershipStatus::wait_for_farewell() {
  MutexLock lock(mutex_);
  runtime::wait_for_farewell(lock, changed_, connected_,
                             [&]() ELASTIC_REQUIRES(mutex_) { return farewell_ || !ended_.ok(); });
}

void MembershipStatus::wait_until_ended_or_disconnected() {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, kAbsenceAtTheEnd,
                    [&]() ELASTIC_REQUIRES(mutex_) { return !ended_.ok() || !connected_; });
}

bool MembershipStatus::is_in_job() const {
  const MutexLock lock(mutex_);
  return ended_.ok() && welcomed_;
}

bool MembershipStatus::left_after_timeout() const {
  const MutexLock lock(mutex_);
  return left_ && ended_.code() == Code::kTimeout;
}

std::shared_ptr<const ViewSummary> MembershipStatus::view() const {
  const MutexLock lock(mutex_);
  return view_;
}

std::shared_ptr<const Roster> MembershipStatus::roster() const {
  const MutexLock lock(mutex_);
  return roster_;
}

void MembershipStatus::set_roster(Roster roster) {
  auto shared = std::make_shared<const Roster>(std::move(roster));
  const MutexLock lock(mutex_);
  roster_ = std::move(shared);
}

void MembershipStatus::set_synced() {
  const MutexLock lock(mutex_);
  synced_ = true;
}

bool MembershipStatus::synced() const {
  const MutexLock lock(mutex_);
  return synced_;
}

void MembershipStatus::set_slowest(int rank) {
  const MutexLock lock(mutex_);
  slowest_ = rank;
}

int MembershipStatus::slowest() const {
  const MutexLock lock(mutex_);
  return slowest_;
}

}  // namespace elastic::runtime
