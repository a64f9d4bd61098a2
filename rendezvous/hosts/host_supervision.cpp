#include "rendezvous/hosts/host_supervision.hpp"

#include <algorithm>
#include <utility>

#include "rendezvous/hosts/agent_end.hpp"
#include "rendezvous/launcher/exit_code.hpp"
#include "rendezvous/launcher/supervision_text.hpp"

namespace elastic::hosts {

using launcher::because;
using launcher::seconds;
using launcher::signal_name;

namespace exit_code = launcher::exit_code;

namespace {

/// A count of workers is that of a moment ago: an agent that has just begun may not have told.
constexpr Milliseconds kCountsAfter{2000};

std::string count(int workers) {
  return std::to_string(workers) + (workers == 1 ? " worker" : " workers");
}

}  // namespace

std::vector<Action> HostSupervision::decide(const Event& event, TimePoint now) {
  Actions actions;
  if (finished_) return actions;
  std::visit([&](const auto& happened) { on(happened, now, actions); }, event);
  finish_if_over(now, actions);
  return actions;
}

TimePoint HostSupervision::next_tick() const {
  TimePoint next = std::min({notice_at_, end_at_, kill_at_, settled_at_});
  if (ending()) return next;
  for (const auto& [name, place] : places_) next = std::min({next, place.again, place.due});
  return next;
}

void HostSupervision::on(const ListChanged& event, TimePoint now, Actions& actions) {
  if (ending()) return;
  if (!begun_) return begin(event.hosts, now, actions);
  int before = 0;
  for (const auto& [name, place] : places_) before += place.listed ? place.slots : 0;
  // The server starts the workers of hosts that leave where there is room; new hosts get the rest.
  const int leaving = drop_unlisted(event.hosts, actions);
  shrink(event.hosts, actions);
  const int slots = total_slots(event.hosts);
  if (options_.np == 0) {
    target_ = slots;
  } else {
    target_ += std::max(0, slots - before);
  }
  if (options_.max_np > 0) target_ = std::min(target_, options_.max_np);
  // Before the first view it starts none: they are added once the job runs.
  const bool forming = phase_ == JobPhase::kForming;
  const int moved = forming ? 0 : std::min(leaving, free_slots());
  if (forming) owed_ = std::min(owed_ + leaving, room_to_target());
  for (const Host& host : event.hosts) {
    const auto known = places_.find(host.name);
    Place& place = known == places_.end() ? places_[host.name] : known->second;
    if (known == places_.end()) place.number = next_number_++;
    const bool is_new = known == places_.end() || !place.listed || place.slots != host.slots;
    place.listed = true;
    if (place.alive && !place.leaving) {
      grow(place, host, actions);
      continue;
    }
    place.slots = host.slots;
    if (place.alive || !is_new) continue;  // it comes back when it has left, or is tried again
    const int wanted = std::max(0, room_to_target() - moved);
    start(host.name, place, wanted, now, actions);
  }
  expect_placed(actions);
}

/// While the job forms, hosts may leave and others come: the first view waits for the workers that
/// there still are. Those of a host that leaves count until its agent has ended, so that the first
/// view does not begin with them.
void HostSupervision::expect_placed(Actions& actions) {
  if (phase_ != JobPhase::kForming || has_begun_) return;
  int placed = 0;
  for (const auto& [name, place] : places_) placed += place.alive ? place.workers : 0;
  if (std::exchange(expected_, std::max(1, placed)) == expected_) return;
  actions.emplace_back(Say{"the hosts have changed: the job begins with " + count(expected_)});
  actions.emplace_back(Expect{expected_});
}

void HostSupervision::begin(const HostList& hosts, TimePoint now, Actions& actions) {
  begun_ = true;
  begun_at_ = now;
  target_ = options_.np > 0 ? options_.np : total_slots(hosts);
  if (options_.max_np > 0) target_ = std::min(target_, options_.max_np);
  const std::vector<int> placed = hosts::place(hosts, target_, options_.placement);
  for (const int workers : placed) expected_ += workers;
  if (expected_ < target_) {
    actions.emplace_back(Say{"the hosts have " + std::to_string(expected_) +
                             " slots: beginning with " + count(expected_) + " of " +
                             std::to_string(target_)});
    owed_ = target_ - expected_;
  }
  actions.emplace_back(Expect{expected_});
  for (std::size_t at = 0; at < hosts.size(); ++at) {
    Place& place = places_[hosts[at].name];
    place.number = next_number_++;
    place.slots = hosts[at].slots;
    start(hosts[at].name, place, placed[at], now, actions);
  }
}

/// \returns how many workers leave with their hosts.
int HostSupervision::drop_unlisted(const HostList& hosts, Actions& actions) {
  int leaving = 0;
  for (auto& [name, place] : places_) {
    const bool listed = std::any_of(hosts.begin(), hosts.end(),
                                    [&name = name](const Host& host) { return host.name == name; });
    if (listed || !place.listed) continue;
    place.listed = false;
    place.again = TimePoint::max();
    if (!place.alive || place.leaving) continue;
    place.leaving = true;
    leaving += place.workers;
    actions.emplace_back(Say{"host " + name + " is not in the list any more: its workers leave"});
    actions.emplace_back(LimitHost{name, 0});
  }
  return leaving;
}

/// Hosts that have fewer slots. The server finds places for their workers, as far as there are any.
void HostSupervision::shrink(const HostList& hosts, Actions& actions) {
  for (const Host& host : hosts) {
    const auto found = places_.find(host.name);
    if (found == places_.end() || host.slots >= found->second.slots) continue;
    Place& place = found->second;
    if (!place.alive || place.leaving) continue;
    actions.emplace_back(LimitHost{host.name, host.slots});
    place.leaving = host.slots == 0;
    place.slots = host.slots;
    const int lost = std::max(0, place.workers - host.slots);
    place.workers -= lost;
    owed_ += std::max(0, lost - free_slots());
  }
}

void HostSupervision::grow(Place& place, const Host& host, Actions& actions) {
  if (host.slots <= place.slots) return;
  actions.emplace_back(LimitHost{host.name, host.slots});
  owed_ = std::min(owed_ + host.slots - place.slots, room_to_target());
  place.slots = host.slots;
}

void HostSupervision::start(const std::string& host, Place& place, int np, TimePoint now,
                            Actions& actions) {
  const int wanted = std::min(np, place.slots);
  place.workers = place.quarantined ? 0 : wanted;
  place.again = TimePoint::max();
  if (place.slots == 0) return;
  place.alive = true;
  place.leaving = place.drained_by_user = false;
  place.counted = place.overdue = false;
  place.started = now;
  place.due = now + time_to_come();
  owed_ = place.quarantined ? std::max(owed_, wanted) : std::max(0, owed_ - place.workers);
  settled_at_ = TimePoint::max();
  actions.emplace_back(StartAgent{host, place.number, place.workers, place.slots});
}

void HostSupervision::on(const AgentEnded& event, TimePoint now, Actions& actions) {
  const auto found = places_.find(event.host);
  if (found == places_.end()) return;
  Place& place = found->second;
  place.alive = false;
  place.due = TimePoint::max();
  const ExitStatus& status = event.status;
  if (status.ok() && phase_ != JobPhase::kForming) any_succeeded_ = true;
  if (ending()) {
    failed_after_done_ |=
        phase_ == JobPhase::kDone && status.signal == 0 && status.code == exit_code::kFailed;
    place.workers = 0;
    return;
  }
  if (phase_ == JobPhase::kForming && status.signal == 0 &&
      status.code == exit_code::kFailedAtStart) {
    // Without them the job would begin too small.
    phase_ = JobPhase::kFailed;
    phase_text_ = "workers of host " + event.host + " failed before the job had begun";
    return end_agents(now, actions);
  }
  const bool drained = status.signal == 0 && status.code == exit_code::kDrained;
  const bool is_done = status.ok() && phase_ != JobPhase::kForming;  // no job is before its begin
  if (!place.listed || place.leaving || is_done || drained) {
    place.workers = 0;
    if (!status.ok()) actions.emplace_back(Say{"host " + event.host + " has been drained"});
    // The list may name the host again while its workers leave.
    const bool wanted = std::exchange(place.leaving, false) && place.listed && place.slots > 0;
    if (wanted && !place.drained_by_user) start(event.host, place, room_to_target(), now, actions);
    return expect_placed(actions);
  }
  agent_failed(event, place, now, actions);
}

void HostSupervision::agent_failed(const AgentEnded& event, Place& place, TimePoint now,
                                   Actions& actions) {
  const int lost = std::exchange(place.workers, 0);
  if (now - place.started >= options_.proven) place.failures = 0;
  place.failure = place.overdue ? "its elasticrun did not reach the job's server within " +
                                      seconds(options_.start) + " (--start-timeout-ms)"
                                : reason_of_end(event, place.counted);
  place.unprepared = event.status.signal == 0 && event.status.code == exit_code::kNotPrepared;
  // It would be refused again.
  const bool refused = event.status.signal == 0 && event.status.code == exit_code::kRefused;
  owed_ += lost;
  std::string next = "; it is not tried again";
  if (!refused) {
    Milliseconds pause = options_.first_pause;
    for (int doubled = 0; doubled < place.failures && pause < options_.longest_pause; ++doubled) {
      pause *= 2;
    }
    pause = std::min(pause, options_.longest_pause);
    ++place.failures;
    place.again = now + pause;
    next = "; tried again in " + seconds(pause);
  }
  actions.emplace_back(
      Say{"host " + event.host + ": " + place.failure +
          (lost > 0 ? "; " + count(lost) + (place.counted ? " lost" : " missing") : "") + next});
  if (phase_ != JobPhase::kForming || lost == 0) return;
  expected_ = std::max(1, expected_ - lost);
  actions.emplace_back(Expect{expected_});
}

void HostSupervision::on(const Counted& event, TimePoint now, Actions& actions) {
  int room = 0;
  int counted = 0;
  for (auto& [name, place] : places_) {
    place.quarantined = event.quarantined.contains(name);
    const auto told = event.running.find(name);
    if (place.alive && !place.leaving && event.drained.contains(name)) {
      place.leaving = place.drained_by_user = true;
    }
    if (!place.alive || told == event.running.end() || now < place.started + kCountsAfter) continue;
    place.counted = true;
    place.due = TimePoint::max();
    place.workers = told->second;
    counted += told->second;
    if (place.listed) room += free_slots(place);
  }
  if (ending()) return;
  target_ = std::max(target_, counted);  // others have added some
  owed_ = std::min(owed_, room_to_target());
  const int more = std::min(owed_, room);
  if (more <= 0 || phase_ != JobPhase::kRunning || !event.joinable) return;
  owed_ -= more;
  actions.emplace_back(AddWorkers{more});
}

void HostSupervision::on(const JobStateChanged& event, TimePoint now, Actions&) {
  if (over()) return;
  phase_ = event.phase;
  has_begun_ |= phase_ == JobPhase::kRunning;
  phase_text_ = event.text;
  stopped_ |= event.end_workers;
  job_stopped_ = event.stopped;
  if (over()) notice_at_ = now + options_.exit_notice;
  if (phase_ == JobPhase::kDone) end_at_ = std::min(end_at_, now + options_.exit + options_.margin);
  if (phase_ == JobPhase::kFailed) end_at_ = std::min(end_at_, now + options_.margin);
}

void HostSupervision::on(const SignalReceived& event, TimePoint now, Actions& actions) {
  if (++signals_ == 1) {
    first_signal_ = event.number;
    if (over()) {
      actions.emplace_back(
          Say{signal_name(event.number) + ": stopping what is left of the job, which is over"});
      return end_agents(now, actions);
    }
    if (phase_ == JobPhase::kForming) {
      actions.emplace_back(Say{signal_name(event.number) + ": stopping the workers"});
      return end_agents(now, actions);
    }
    actions.emplace_back(Say{signal_name(event.number) +
                             ": stopping the job at the next step boundary (again to stop the "
                             "workers at once)"});
    actions.emplace_back(RequestStop{});
    end_at_ = std::min(end_at_, now + options_.drain);
  } else if (signals_ == 2 && kill_at_ == TimePoint::max()) {
    actions.emplace_back(Say{"stopping the workers at once (again to kill them)"});
    end_agents(now, actions);
  } else {
    actions.emplace_back(KillAgents{});
    end_at_ = kill_at_ = TimePoint::max();
  }
}

void HostSupervision::on(const TimePassed&, TimePoint now, Actions& actions) {
  if (now >= kill_at_) {
    kill_at_ = TimePoint::max();
    actions.emplace_back(KillAgents{});
  } else if (now >= end_at_) {
    end_agents(now, actions);
  } else if (now >= notice_at_) {
    name_agents_left(now, actions);
  }
  if (ending()) return;
  give_up_overdue_agents(now, actions);
  for (auto& [name, place] : places_) {
    if (now >= place.again) start(name, place, owed_, now, actions);
  }
}

/// Longer than the start timeout, so that what starts an agent can say by itself that it took
/// longer, and that the server's next count of workers is known.
Milliseconds HostSupervision::time_to_come() const {
  return std::max(options_.start, kCountsAfter) + kCountsAfter;
}

/// As where a login hangs. The end of an agent tells the rest.
void HostSupervision::give_up_overdue_agents(TimePoint now, Actions& actions) {
  for (auto& [name, place] : places_) {
    if (!place.alive || now < place.due) continue;
    place.due = TimePoint::max();
    if (options_.prepares) {
      actions.emplace_back(Say{"host " + name +
                               ": its elasticrun has not reached the job's server for " +
                               seconds(options_.start) +
                               " (--start-timeout-ms); waiting on, as --prepare may take longer"});
      continue;
    }
    place.overdue = true;
    actions.emplace_back(KillAgent{name});
  }
}

/// The job is over: agents that the server knows wait for their workers, the others for nothing.
void HostSupervision::name_agents_left(TimePoint now, Actions& actions) {
  notice_at_ = TimePoint::max();
  std::string waited_for;
  for (const auto& [name, place] : places_) {
    if (!place.alive) continue;
    if (place.counted) {
      waited_for += (waited_for.empty() ? "" : ", ") + name;
      continue;
    }
    actions.emplace_back(Say{
        "host " + name + ": its elasticrun never reached the job's server: not waiting for it"});
    actions.emplace_back(KillAgent{name});
  }
  if (waited_for.empty() || end_at_ == TimePoint::max()) return;
  const auto left = std::chrono::round<std::chrono::seconds>(end_at_ - now);
  actions.emplace_back(Say{"the job is over; waiting for the elasticrun of " + waited_for +
                           " to end, for at most " + seconds(left) + " more (--exit-seconds)"});
}

/// Theirs is the time of SIGTERM and SIGKILL to workers.
void HostSupervision::end_agents(TimePoint now, Actions& actions) {
  notice_at_ = end_at_ = TimePoint::max();
  kill_at_ = now + 2 * options_.kill_grace;
  actions.emplace_back(EndAgents{});
}

void HostSupervision::finish_if_over(TimePoint now, Actions& actions) {
  if (!begun_ || agents() > 0) return;
  const bool too_late = phase_ == JobPhase::kForming && now >= begun_at_ + options_.start;
  if (!ending() && !too_late) {
    // The word of the job's end may be behind the agents' ends.
    if (settled_at_ == TimePoint::max()) settled_at_ = now + options_.settle;
    if (now < settled_at_) return;
  }
  finished_ = true;
  actions.emplace_back(outcome());
}

Finish HostSupervision::outcome() const {
  if (signals_ > 0) return {exit_code::kFailed, "stopped by " + signal_name(first_signal_)};
  if (phase_ == JobPhase::kFailed) {
    return {exit_code::kFailed, "the job failed" + because(phase_text_), has_begun_};
  }
  if (stopped_) return {exit_code::kFailed, "the job was stopped, and its workers where they were"};
  if (phase_ == JobPhase::kDone && job_stopped_ && failed_after_done_) {
    return {exit_code::kFailed, "the job was stopped by signals to the hosts' agents"};
  }
  if (phase_ == JobPhase::kDone) {
    return {failed_after_done_ ? exit_code::kFailed : exit_code::kDone,
            failed_after_done_ ? "workers failed after the job was done" : ""};
  }
  if (any_succeeded_) return {exit_code::kDone, ""};
  std::string reasons;
  bool unprepared = true;
  for (const auto& [name, place] : places_) {
    if (!place.failure.empty()) reasons += "; host " + name + ": " + place.failure;
    unprepared &= place.unprepared;
  }
  return {unprepared ? exit_code::kNotPrepared : exit_code::kFailed,
          "no host is left to run workers" + reasons, has_begun_};
}

int HostSupervision::workers() const {
  int sum = 0;
  for (const auto& [name, place] : places_) {
    if (place.alive && !place.leaving) sum += place.workers;
  }
  return sum;
}

int HostSupervision::free_slots() const {
  int sum = 0;
  for (const auto& [name, place] : places_) sum += free_slots(place);
  return sum;
}

int HostSupervision::free_slots(const Place& place) {
  const bool takes_workers = place.alive && !place.leaving && !place.quarantined;
  return takes_workers ? std::max(0, place.slots - place.workers) : 0;
}

int HostSupervision::room_to_target() const {
  return std::max(0, target_ - workers());
}

int HostSupervision::agents() const {
  return static_cast<int>(std::count_if(places_.begin(), places_.end(),
                                        [](const auto& entry) { return entry.second.alive; }));
}

}  // namespace elastic::hosts
