#include "rendezvous/server/quarantine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rendezvous/protocol/slot_label.hpp"

namespace elastic::rendezvous {

namespace {

/// Failures that begin the first pause.
constexpr int kFailures = 3;

/// Rounded, so that a third failure counts as such some minutes after the first.
int failures_in(double score) {
  return static_cast<int>(std::lround(score));
}

}  // namespace

void Quarantine::note_view(const View& view, TimePoint now) {
  for (const Member& its : view.members) {
    Since& since = members_[its.label];
    if (since.incarnation != its.incarnation) since = {its.incarnation, now};
  }
}

void Quarantine::note_launcher(int number) {
  std::erase_if(members_, [number](const auto& entry) {
    const auto slot = parse_slot_label(entry.first);
    return slot && slot->launcher == number;
  });
}

void Quarantine::worker_failed(const std::string& host, const std::string& label,
                               const std::string& how, TimePoint now) {
  const auto member = members_.extract(label);
  if (!member.empty() && now - member.mapped().at >= options_.proven) return;
  count(hosts_[host], label + " " + how, now);
}

void Quarantine::evicted(const std::string& host, std::uint64_t generation, const std::string& what,
                         TimePoint now) {
  Host& its = hosts_[host];
  if (its.generation == generation) return;
  its.generation = generation;
  count(its, what, now);
}

void Quarantine::count(Host& host, const std::string& what, TimePoint now) {
  if (host.pause) return;
  host.score = score_of(host, now);
  // No more than the longest pause needs: it would only take longer to be forgotten.
  if (pause_after(failures_in(host.score)) < options_.longest_pause) host.score += 1;
  host.scored = now;
  host.latest = what;
  host.failed = true;
}

double Quarantine::score_of(const Host& host, TimePoint now) const {
  if (host.pause || host.score == 0) return host.score;
  const std::chrono::duration<double> passed = now - host.scored;
  const std::chrono::duration<double> half_life = options_.half_life;
  return host.score * std::exp2(-passed / half_life);
}

/// Below kFailures: none.
Milliseconds Quarantine::pause_after(int failures) const {
  if (failures < kFailures) return Milliseconds(0);
  Milliseconds pause = options_.first_pause;
  for (int more = kFailures; more < failures && pause < options_.longest_pause; ++more) pause *= 2;
  return std::min(pause, options_.longest_pause);
}

bool Quarantine::another_takes_workers(const std::string& host, const Hosts& connected) const {
  return std::any_of(connected.begin(), connected.end(),
                     [&](const std::string& other) { return other != host && !pause_of(other); });
}

std::vector<Quarantine::Change> Quarantine::update(const Hosts& connected, TimePoint now) {
  std::vector<Change> changes;
  for (auto& [name, host] : hosts_) {
    if (host.pause && now >= host.pause->ends) {
      end(host, now);
      changes.push_back({name, Milliseconds(0), "its time is over"});
    }
    if (!std::exchange(host.failed, false)) continue;
    const int failures = failures_in(score_of(host, now));
    const Milliseconds pause = pause_after(failures);
    if (pause.count() == 0 || !another_takes_workers(name, connected)) continue;
    const std::string why =
        std::to_string(failures) + " failures of its workers lately, the latest: " + host.latest;
    host.pause = Pause{why, now + pause};
    changes.push_back({name, pause, why});
  }
  release_one(connected, now, changes);
  return changes;
}

/// Where the job has no host left but those in quarantine.
void Quarantine::release_one(const Hosts& connected, TimePoint now, std::vector<Change>& changes) {
  Hosts::const_iterator first = connected.end();
  for (auto one = connected.begin(); one != connected.end(); ++one) {
    const auto pause = pause_of(*one);
    if (!pause) return;
    if (first == connected.end() || pause->ends < pause_of(*first)->ends) first = one;
  }
  if (first == connected.end()) return;
  end(hosts_[*first], now);
  changes.push_back({*first, Milliseconds(0), "no other host takes workers"});
}

void Quarantine::end(Host& host, TimePoint now) {
  host.pause.reset();
  host.scored = now;
}

TimePoint Quarantine::next_end() const {
  TimePoint next = TimePoint::max();
  for (const auto& [name, host] : hosts_) {
    if (host.pause) next = std::min(next, host.pause->ends);
  }
  return next;
}

std::optional<Quarantine::Pause> Quarantine::pause_of(const std::string& host) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? std::nullopt : found->second.pause;
}

}  // namespace elastic::rendezvous
