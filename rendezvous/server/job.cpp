#include "rendezvous/server/job.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/host_identity.hpp"
#include "base/log.hpp"
#include "base/overloaded.hpp"

namespace elastic::rendezvous {

namespace {

/// So that launchers and `elasticrun ctl` can still ask how it ended.
constexpr Milliseconds kLingerWhenOver{2000};
/// Workers may come back from a broken connection. In a job that has begun, Membership decides how
/// long they are awaited, unless the process that started the server has ended as well.
constexpr Milliseconds kLingerWhenEmpty{10000};
/// Others may have found the server, and be on their way.
constexpr Milliseconds kLingerWithoutStarter{2000};
/// The kernel closes a process's descriptors one after the other.
constexpr std::chrono::microseconds kFirstBetweenLooks{100};
constexpr Milliseconds kLongestBetweenLooks{100};
/// While the journal is waited for.
constexpr Milliseconds kAppendAgain{200};
constexpr Milliseconds kLongestWaitForEnd{2000};
/// Where the journal has no room for joiners.
constexpr Milliseconds kLookForRoomAgain{500};
/// A store needs some milliseconds, and more while its members elect a leader.
constexpr Milliseconds kUsualWait{1000};

constexpr const char* kEnded = "its process has ended";

/// How a job stands that is over.
JobState state_of(const LastWord& end) {
  if (const auto* fail = std::get_if<Fail>(&end)) {
    return {rendezvous::name(Phase::kFailed), fail->reason, false, false, false, {}};
  }
  const auto& farewell = std::get<Farewell>(end);
  const bool stopped = farewell.reason == Farewell::Reason::kStopped;
  return {rendezvous::name(Phase::kDone), farewell.text, false, false, stopped, {}};
}

}  // namespace

Job::Job(boost::asio::io_context& io, std::string name, MembershipOptions options,
         QuarantineOptions quarantine, std::unique_ptr<JournalSink> journal, RecoveredState memory,
         EventLog events)
    : name_(std::move(name)),
      host_(host_identity()),
      membership_(options, memory),
      journal_(std::move(journal)),
      events_(std::move(events)),
      quarantine_(quarantine),
      pending_(std::move(memory.requests)),
      room_due_(io),
      tick_(io),
      end_(io),
      limit_due_(io),
      quarantine_ends_(io),
      phase_(membership_.phase()) {
  // How long they have been members before this server is not known.
  quarantine_.note_view(membership_.view(), TimePoint());
  // The journal goes with this object.
  journal_->when_changed([this] { go_on(); });
  restore(pending_.limits);
  if (phase_ == Phase::kDone || phase_ == Phase::kFailed) {
    phase_text_ = state_of(*membership_.earlier_end()).text;
  }
}

bool Job::enter(const Register& registration, const Peer& peer) {
  const std::string& incarnation = registration.incarnation;
  const auto refuse = [&](const std::string& why) {
    peer->send(Refuse{why});
    peer->close();
    return false;
  };
  if (!abandoned_.empty()) return refuse(abandoned_);
  if (incarnation.empty()) return refuse("a worker must have an incarnation");
  if (const Status room = room_for(incarnation); !room.ok()) {
    log::warn("job {}: refused a joiner: {}", name_, room.message());
    refused_labels_.insert(registration.label);
    return refuse("no worker can join now: " + room.message());
  }
  if (blocked()) {  // it tries again
    peer->close();
    return false;
  }
  // Before the decision, whose first actions are for this connection.
  const Peer earlier = std::exchange(workers_[incarnation], peer);
  if (earlier) earlier->abort("the worker came back on another connection");
  had_workers_ = true;
  const Decision decision = decide(Registered{registration, !launchers_.empty()});
  const bool welcomed =
      std::any_of(decision.actions.begin(), decision.actions.end(), [&](const Action& action) {
        const auto* sent = std::get_if<SendTo>(&action);
        return sent != nullptr && std::holds_alternative<Welcome>(sent->message) &&
               std::ranges::find(sent->incarnations, incarnation) != sent->incarnations.end();
      });
  if (welcomed) {
    silent_.erase(registration.label);
    if (!earlier && registration.generation == 0) note_replacement(incarnation);
    return true;
  }
  workers_.erase(incarnation);
  watch_end();
  peer->close();
  return false;
}

/// Every view that a joiner causes takes room from the views that members' deaths will need.
/// Launchers hear when there is no room, and start no worker until there is: it would be refused.
Status Job::room_for(const std::string& incarnation) {
  const bool forming = membership_.view().generation == 0;
  if (forming || membership_.member(incarnation) != nullptr) return {};
  Status room = journal_->room();
  const bool lacked = !no_room_.empty();
  no_room_ = room.ok() ? "" : room.message();
  if (lacked == room.ok()) tell_joinable();
  if (!lacked && !room.ok()) {
    log::warn("job {}: no worker can join: {}", name_, no_room_);
    await_room();
  }
  return room;
}

void Job::await_room() {
  room_due_.expires_after(kLookForRoomAgain);
  room_due_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || self->no_room_.empty()) return;
    if (!self->room_for("").ok()) return self->await_room();
    log::warn("job {}: workers can join again: its journal has room", self->name_);
  });
}

/// While the journal is waited for, launchers hear with the news that wait for it.
void Job::tell_joinable() {
  if (!waits_since_) note_phase(reason_);
}

void Job::received(const std::string& incarnation, const Message& message) {
  // Later they would tell nothing: silence is not judged after a standstill.
  const auto* heartbeat = std::get_if<Heartbeat>(&message);
  if (blocked() && heartbeat != nullptr) return;
  decide(Received{incarnation, message});
  if (heartbeat != nullptr) note_heartbeat(incarnation, *heartbeat);
}

void Job::lost(const std::string& incarnation, const Peer& peer, const std::string& why) {
  const auto found = workers_.find(incarnation);
  if (found == workers_.end() || found->second != peer) return;
  workers_.erase(found);
  const bool ended = has_ended(incarnation);
  if (ended) decide(ProcessEnded{incarnation, kEnded});
  decide(ConnectionLost{incarnation, why});
  if (!ended) watch_for_end(incarnation, kFirstBetweenLooks);
}

/// Certain only of a member on this host: its listener is gone. The members tell of others.
bool Job::has_ended(const std::string& incarnation) const {
  const Member* const its = membership_.member(incarnation);
  return its != nullptr && its->endpoints.host == host_ && has_no_listener(its->endpoints.local);
}

/// Until the member is back, or is none any more.
void Job::watch_for_end(const std::string& incarnation, Duration pause) {
  const Member* const its = membership_.member(incarnation);
  if (its == nullptr || its->endpoints.host != host_) return;
  const auto timer = std::make_shared<boost::asio::steady_timer>(tick_.get_executor());
  timer->expires_after(pause);
  timer->async_wait([weak = weak_from_this(), timer, incarnation, pause](const auto& error) {
    const auto self = weak.lock();
    if (error || !self || self->stopped_ || self->workers_.contains(incarnation)) return;
    try {
      if (self->has_ended(incarnation)) {
        self->decide(ProcessEnded{incarnation, kEnded});
      } else {
        self->watch_for_end(incarnation, std::min<Duration>(2 * pause, kLongestBetweenLooks));
      }
    } catch (const std::exception& failure) {
      log::error("job {}: {}", self->name_, failure.what());
    }
  });
}

Decision Job::decide(const Event& event) {
  if (blocked()) {
    waiting_.push_back(event);
    return {{}, "this waits until the journal has kept the latest view", true};
  }
  Decision decision = membership_.decide(event, Clock::now());
  if (!decision.reason.empty() && is_news(event, decision.reason)) {
    log::info("job {} generation {}: {}", name_, membership_.view().generation, decision.reason);
  }
  for (const std::string& text : decision.warnings) log::warn("job {}: {}", name_, text);
  actions_.assign(decision.actions.begin(), decision.actions.end());
  reason_ = decision.reason;
  count_evictions(decision);
  end_silent(decision);
  carry_out();
  return decision;
}

/// A launcher that is to leave asks again and again to let its workers go: within a view the log
/// has each answer once.
bool Job::is_news(const Event& event, const std::string& reason) {
  if (!std::holds_alternative<RemoveWorker>(event)) return true;
  const std::uint64_t generation = membership_.view().generation;
  if (std::exchange(told_generation_, generation) != generation) told_removals_.clear();
  return told_removals_.insert(reason).second;
}

/// As far as the journal allows.
void Job::carry_out() {
  while (!actions_.empty() && abandoned_.empty() && perform(actions_.front())) {
    actions_.pop_front();
  }
  if (!waits_since_) {
    note_view();
    note_phase(reason_);
  }
  arm_tick();
  watch_end();
}

void Job::resume() {
  if (!leads()) return;
  carry_out();
  reply();
  while (!blocked() && !waiting_.empty()) {
    const Event event = std::move(waiting_.front());
    waiting_.pop_front();
    decide(event);
  }
  while (!blocked() && !requests_.empty()) {
    const Request its = std::move(requests_.front());
    requests_.pop_front();
    request(its.peer, its.message, its.launcher);
  }
}

/// False: it has to wait, and what follows it as well.
bool Job::perform(const Action& action) {
  return std::visit(
      Overloaded{[this](const SendTo& send) {
                   // A launcher shows this server's log, in which the same warning is.
                   const bool shown =
                       std::holds_alternative<Warning>(send.message) && !launchers_.empty();
                   if (shown) return true;
                   const Frame frame(send.message);
                   for (const std::string& incarnation : send.incarnations) {
                     const auto found = workers_.find(incarnation);
                     if (found != workers_.end()) found->second->send(frame);
                   }
                   return true;
                 },
                 [this](const CloseConnection& close) {
                   const auto found = workers_.find(close.incarnation);
                   if (found == workers_.end()) return true;
                   found->second->close();
                   workers_.erase(found);
                   return true;
                 },
                 [this](const Journal& journal) { return keep(journal_->append(journal.view)); },
                 [this](const ReserveGenerations& reserve) {
                   return keep(journal_->append_floor(reserve.up_to));
                 },
                 [this](const JournalRequests& its) {
                   pending_ = its.requests;
                   pending_.limits = limits_to_keep();
                   return keep(journal_->append_requests(pending_));
                 },
                 [this](const JournalEnd& end) { return keep_end(end.word); }},
      action);
}

/// Before the members hear of it, so that no other server opens a second training; but they are not
/// to wait for long. False: not kept yet.
bool Job::keep_end(const LastWord& end) {
  const Status written = journal_->append_end(end);
  if (written.code() == Code::kUnavailable) {
    if (!waits_since_) waits_since_ = Clock::now();
    if (Clock::now() < *waits_since_ + kLongestWaitForEnd) return false;
  }
  waits_since_.reset();
  told_of_wait_ = false;
  if (!written.ok())
    log::warn("job {}: its end is not in the journal: {}", name_, written.message());
  pending_ = {};
  limits_.clear();
  limit_due_.cancel();
  return true;
}

/// Whether it has been made durable; if not, the same action comes again.
bool Job::keep(const Status& written) {
  const TimePoint now = Clock::now();
  if (written.code() == Code::kUnavailable) {
    if (!waits_since_) waits_since_ = now;
    if (now >= *waits_since_ + kUsualWait && !std::exchange(told_of_wait_, true)) {
      log::error("job {} stands still: {}", name_, written.message());
    }
    return false;
  }
  waits_since_.reset();
  if (std::exchange(told_of_wait_, false) && written.ok()) {
    log::warn("job {} goes on: its journal has kept the view", name_);
  }
  if (!written.ok()) abandon(written);
  return true;
}

/// A view that could be forgotten must not be announced, so the job ends here.
void Job::abandon(const Status& why) {
  abandoned_ = "the view cannot be made durable: " + why.message();
  log::error("job {}: {}", name_, abandoned_);
  for (const auto& [incarnation, peer] : std::exchange(workers_, {})) {
    peer->send(Fail{abandoned_, false});
    peer->close();
  }
}

void Job::arm_tick() {
  const TimePoint due = waits_since_ ? Clock::now() + kAppendAgain : membership_.next_tick();
  if (due == TimePoint::max() || !abandoned_.empty()) {
    armed_for_.reset();
    tick_.cancel();
    return;
  }
  if (armed_for_ == due) return;  // as after most heartbeats
  armed_for_ = due;
  tick_.expires_at(due);
  tick_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->armed_for_.reset();
    self->go_on();
  });
}

/// Also called when the journal has changed.
void Job::go_on() try {
  if (waits_since_) return resume();
  decide(Tick{});
} catch (const std::exception& failure) {
  log::error("job {}: {}", name_, failure.what());
}

JobState Job::state() const {
  JobState now{rendezvous::name(phase_),   phase_text_,           joinable_,
               membership_.ends_workers(), membership_.stopped(), {}};
  if (phase_ == Phase::kDone || phase_ == Phase::kFailed) now.last = status();
  return now;
}

StatusReply Job::status() const {
  StatusReply reply = membership_.status(Clock::now());
  reply.job = name_;
  reply.joinable = reply.joinable && no_room_.empty();
  reply.phase = rendezvous::name(phase_);
  reply.launchers = launchers_.status();
  for (auto& its : *reply.launchers) its.quarantine = quarantine_of(its.host);
  reply.history = history_.history();
  return reply;
}

void Job::add_launcher(const Peer& peer) {
  launchers_.connected(peer);
  peer->send(state());
  peer->send(Spawn{launchers_.wanted(peer)});
}

void Job::enlist(const Peer& peer, const Enlist& launcher) {
  const bool first = !launchers_.has_enlisted(peer);
  if (first && !launcher.host.empty()) {
    note("host_connected", launcher.host + " with " + std::to_string(launcher.slots) + " slots",
         {{"host", launcher.host}, {"slots", std::int64_t{launcher.slots}}});
  }
  const bool known = launchers_.knows(launcher.id);
  if (!known && launcher.begun && membership_.earlier_end()) {
    // Its workers are of the job before, and hear the same.
    launchers_.disconnected(peer);
    return peer->send(state_of(*membership_.earlier_end()));
  }
  if (first) warn_of_namesake(peer, launcher);
  const int number = launchers_.enlist(peer, launcher);
  if (!known) quarantine_.note_launcher(number);
  carry_out_quarantine();
  if (!first) return carry_out_limits();  // its new numbers may be those before a limit
  peer->send(Enlisted{number, name_, quarantine_.pause_of(launcher.host).has_value(), returns_});
  peer->send(Spawn{launchers_.wanted(peer)});
  tell_of_silent(number);
  carry_out_limits();
}

/// Quarantines and pardons are by name, and would be for both; a drain of the name is refused. Once
/// for each name.
void Job::warn_of_namesake(const Peer& peer, const Enlist& launcher) {
  const Peer other = launchers_.namesake(launcher);
  if (!other || !told_hosts_.insert(launcher.host).second) return;
  log::warn(
      "job {}: two launchers have the host name {}: those at {} and {}; a quarantine is for both, "
      "and "
      "ctl drain needs their numbers, so give each its own --host-name",
      name_, launcher.host, other->peer(), peer->peer());
  events_.write("host_name_taken",
                {{"host", launcher.host},
                 {"addresses", std::vector<std::string>{other->peer(), peer->peer()}}});
}

void Job::remove_launcher(const Peer& peer) {
  if (const std::string host = launchers_.host_of(peer); !host.empty()) {
    note("host_disconnected", host, {{"host", host}});
  }
  launchers_.disconnected(peer);
  for (Limit& limit : limits_) limit.told.erase(peer);
  carry_out_quarantine();
}

void Job::when_over(std::function<void(Status)> over, Milliseconds first_worker) {
  over_ = std::move(over);
  first_worker_ = first_worker;
  watch_end();
}

void Job::lose_starter() {
  starter_lost_ = true;
  watch_end();
}

void Job::watch_end() {
  if (!over_) return;
  TimePoint ends = TimePoint::max();
  if (phase_ == Phase::kDone || phase_ == Phase::kFailed) {
    ends = Clock::now() + kLingerWhenOver;
  } else if (workers_.empty() && starter_lost_ && membership_.view().generation == 0) {
    ends = Clock::now() + kLingerWithoutStarter;
  } else if (workers_.empty() && starter_lost_ && had_workers_) {
    ends = Clock::now() + kLingerWhenEmpty;
  } else if (workers_.empty() && phase_ == Phase::kForming) {
    ends = Clock::now() + (had_workers_ ? kLingerWhenEmpty : first_worker_);
  } else if (workers_.empty() && phase_ == Phase::kRecovering) {
    ends = Clock::now() + first_worker_;
  }  // otherwise Membership awaits its members
  if (ends == TimePoint::max()) {
    ends_ = ends;
    end_.cancel();
  }
  if (ends >= ends_) return;
  ends_ = ends;
  end_.expires_at(ends);
  end_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || !self->over_) return;
    std::exchange(self->over_, {})(self->how_over());
  });
}

/// A server that waited in vain has not done its work. Without its starter it ends in silence.
Status Job::how_over() const {
  if (phase_ == Phase::kFailed) return Status(Code::kInternal, "the job failed: " + phase_text_);
  if (phase_ == Phase::kDone || had_workers_ || starter_lost_) return {};
  const double seconds = std::chrono::duration<double>(first_worker_).count();
  return Status(
      Code::kUnavailable,
      phase_ == Phase::kRecovering
          ? fmt::format("no member of the job came back within {} s (--first-worker-timeout-ms)",
                        seconds)
          : fmt::format("no worker came within {} s (--first-worker-timeout-ms)", seconds));
}

void Job::stop() {
  stopped_ = true;
  over_ = {};
  tick_.cancel();
  end_.cancel();
  limit_due_.cancel();
  room_due_.cancel();
  quarantine_ends_.cancel();
}

}  // namespace elastic::rendezvous
