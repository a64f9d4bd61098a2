// Failures of workers, as they count against their hosts, and what follows.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.hpp"
#include "rendezvous/protocol/slot_label.hpp"
#include "rendezvous/server/job.hpp"

namespace elastic::rendezvous {

/// One that the job has let go was no failure; one that it has given up has counted already.
Done Job::worker_ended(const Peer& peer, const WorkerEnded& its) {
  const std::string host = launchers_.host_of(peer);
  if (host.empty() || !launchers_.is_news(peer, its.serial)) return {};
  silent_.erase(its.label);
  const std::vector<StatusReply::Departed> departed = membership_.status(Clock::now()).departed;
  // A worker that never was a member has the label of one before it.
  const bool excused =
      refused_labels_.erase(its.label) > 0 ||
      (quarantine_.was_member(its.label) &&
       std::any_of(departed.begin(), departed.end(), [&](const auto& one) {
         return one.label == its.label &&
                (one.how == "removed" || one.how == "finished" || one.how == "evicted");
       }));
  if (its.failure.empty() || excused) {
    quarantine_.worker_ended(its.label);
  } else {
    quarantine_.worker_failed(host, its.label, its.failure, Clock::now());
  }
  carry_out_quarantine();
  note_end(its);
  (void)room_for("");  // the launcher is about to ask whether another worker can join
  return {};
}

/// A member's launcher has seen its process end. Another process may have had the label before.
void Job::note_end(const WorkerEnded& its) {
  const std::vector<Member>& members = membership_.view().members;
  const auto found = std::ranges::find_if(members, [&](const Member& one) {
    return one.label == its.label && its.pid != 0 && one.pid == its.pid;
  });
  if (found == members.end()) return;
  decide(ProcessEnded{found->incarnation, "its launcher saw its process end"});
}

void Job::count_evictions(const Decision& decision) {
  if (decision.evicted.empty()) return;
  for (const auto& [name, pid, label, why] : decision.evicted) {
    if (const auto note = logged_evictions_.admit(Clock::now())) {
      log::warn("job {}: {}, process {}, {}{}", name_, name, pid, why, *note);
    }
    const auto slot = parse_slot_label(label);
    const std::string host = slot ? launchers_.host_of(slot->launcher) : "";
    if (host.empty()) continue;
    quarantine_.evicted(host, noted_generation_, label + " " + why, Clock::now());
  }
  carry_out_quarantine();
}

void Job::carry_out_quarantine() {
  if (stopped_ || phase_ == Phase::kDone || phase_ == Phase::kFailed) return;
  for (const auto& change : quarantine_.update(launchers_.hosts_with_slots(), Clock::now())) {
    tell(change);
  }
  const TimePoint next = quarantine_.next_end();
  if (next == TimePoint::max()) {
    quarantine_ends_.cancel();
    return;
  }
  quarantine_ends_.expires_at(next);
  quarantine_ends_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    if (const auto self = weak.lock(); self && !error) self->carry_out_quarantine();
  });
}

void Job::tell(const Quarantine::Change& change) {
  const auto& [host, pause, why] = change;
  const bool begins = pause.count() > 0;
  if (begins) {
    const double seconds = std::chrono::duration<double>(pause).count();
    log::warn("job {}: host {} is in quarantine, and gets no workers for {} s: {}", name_, host,
              seconds, why);
    note("host_quarantined", fmt::format("{} for {} s: {}", host, seconds, why),
         {{"host", host}, {"seconds", seconds}, {"why", why}});
  } else {
    log::warn("job {}: host {} is out of quarantine: {}", name_, host, why);
    note("host_released", host + ": " + why, {{"host", host}, {"why", why}});
  }
  for (const Peer& launcher : launchers_.set_quarantine(host, begins)) {
    launcher->send(Quarantined{begins});
  }
}

std::optional<HostQuarantine> Job::quarantine_of(const std::string& host) const {
  const auto pause = quarantine_.pause_of(host);
  if (!pause) return std::nullopt;
  const auto left = std::chrono::ceil<Milliseconds>(pause->ends - Clock::now());
  return HostQuarantine{pause->why, std::max<std::int64_t>(0, left.count())};
}

/// Quarantine goes by the name, so that hosts of one name are pardoned together.
Done Job::pardon(const PardonRequest& request) {
  const std::string host = launchers_.host_named(request.host);
  if (host.empty()) {
    const std::string hosts = launchers_.hosts();
    return {false, "no host of the job is called " + request.host +
                       (hosts.empty() ? "; none is connected" : "; connected are: " + hosts)};
  }
  const bool paused = quarantine_.pause_of(host).has_value();
  const bool failed = quarantine_.forget(host);
  const std::vector<int> numbers = launchers_.connected_on(host);
  const bool several = numbers.size() > 1;
  const std::string who = several ? fmt::format("all {} hosts that are called {} ({}) are",
                                                numbers.size(), host, fmt::join(numbers, ", "))
                                  : fmt::format("host {} is", host);
  if (paused) {
    tell({host, Milliseconds(0), "it was pardoned"});
    carry_out_quarantine();
    return {true, fmt::format("{} out of quarantine, and {} failures are forgotten", who,
                              several ? "their" : "its")};
  }
  return {true, "host " + host + " is not in quarantine" +
                    (failed ? "; its failures are forgotten" : ", and no failures count for it")};
}

}  // namespace elastic::rendezvous
