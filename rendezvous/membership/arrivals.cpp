// Arrivals: the first view, the comparison of layouts, and the admission of joiners.
#include <algorithm>
#include <limits>

#include "rendezvous/membership/state.hpp"

namespace elastic::rendezvous {

/// Answers the registration of a worker for which the job is over, and returns true; otherwise
/// returns false.
///
/// - A member of an earlier job of this server is told how that job ended, also while the present
///   job runs.
/// - After the end of the present job, a worker is told how it ended if it took part, had come to
///   take part, or was started by a launcher for this job. Any other worker is refused: it would
///   otherwise believe that it has trained.
bool Membership::State::tell_that_it_is_over(const Registered& event) {
  const Register& its = event.registration;
  const std::uint64_t member_until =
      its.generation != 0 ? its.generation : its.last_generation.value_or(0);
  if (earlier_end_ && member_until != 0 && member_until <= earlier_generations_) {
    std::visit([&](const auto& word) { send(its.incarnation, word); }, *earlier_end_);
    return true;
  }
  if (!over_) return false;
  const bool took_part = member_until != 0 || came_.contains(its.incarnation);
  if (!failure_.empty()) {
    send(its.incarnation, Fail{failure_, misfit_, timed_out_, mismatch_});
  } else if (took_part || event.launched) {
    // One that was given up did not stop where the others have.
    const auto former = former_.find(its.incarnation);
    const bool given_up =
        former != former_.end() && former->second.reason == Farewell::Reason::kEvicted;
    const bool stopped = end_.reason == Farewell::Reason::kStopped;
    send(its.incarnation, given_up && stopped ? former->second : end_);
  } else {
    const bool stopped = end_.reason == Farewell::Reason::kStopped;
    log_reason(describe(its.incarnation) + " came after the job's end, and was refused");
    send(its.incarnation, Refuse{std::string("the job was ") + (stopped ? "stopped" : "done") +
                                 " before this worker came, and its server serves no other: start "
                                 "a new server for another training"});
  }
  return true;
}

/// The number of workers that the first view waits for.
int Membership::State::first_view_size() const {
  const int wanted = std::max(options_.initial_np, options_.min_np);
  return options_.max_np > 0 ? std::min(wanted, options_.max_np) : wanted;
}

/// Decides the first view. It needs `initial_np` workers, or `min_np` once `start_timeout` has
/// passed since the first registration; with fewer by then the job fails.
bool Membership::State::try_form() {
  if (workers_.empty()) {
    first_registered_.reset();
    return false;
  }
  const int wanted = first_view_size();
  const int here = static_cast<int>(workers_.size());
  const bool late = now_ >= *first_registered_ + options_.start_timeout;
  if (here < wanted && !late) return false;
  if (here < options_.min_np) {
    fail("only " + std::to_string(here) + " of " + std::to_string(wanted) +
         " workers came within " + std::to_string(options_.start_timeout.count()) +
         " ms, and min_np is " + std::to_string(options_.min_np));
    return false;
  }
  form();
  return !over_;
}

/// Announces the first view. Ranks follow the launcher's slots, then the order of arrival.
void Membership::State::form() {
  std::vector<const Worker*> first;
  for (const auto& entry : workers_) first.push_back(&entry.second);
  const auto wish = [](const Worker* worker) {
    const std::int64_t order = worker->registration.order;
    return order < 0 ? std::numeric_limits<std::int64_t>::max() : order;
  };
  std::sort(first.begin(), first.end(), [&](const Worker* a, const Worker* b) {
    return std::pair(wish(a), a->arrival) < std::pair(wish(b), b->arrival);
  });
  // There may be too many if the server has waited for the members of an earlier view.
  const auto most = static_cast<std::size_t>(std::max(options_.max_np, 0));
  if (most > 0 && first.size() > most) first.resize(most);
  if (!links_alike(first)) return;
  View next;
  next.generation = floor_ + 1;
  next.lanes.resize(static_cast<std::size_t>(options_.lanes));
  for (const Worker* worker : first) {
    const Register& r = worker->registration;
    next.members.push_back({r.incarnation, r.endpoints, r.pid, r.label, false});
    next.joined.push_back(r.incarnation);
  }
  causes_ = {"the first " + std::to_string(first.size()) + " workers are here"};
  announce(std::move(next));
  compare_layouts();
}

/// Whether the workers of the first view will link up alike; otherwise the job fails.
bool Membership::State::links_alike(const std::vector<const Worker*>& first) {
  const Register* known = nullptr;
  for (const Worker* worker : first) {
    const Register& its = worker->registration;
    if (!its.all_linked) continue;
    if (known == nullptr) known = &its;
    if (its.all_linked == known->all_linked) continue;
    fail("ELASTIC_ALL_LINKED (Options::all_linked) has to be the same on all workers: it is " +
             std::to_string(*known->all_linked) + " at " + known->label + ", and " +
             std::to_string(*its.all_linked) + " at " + its.label,
         true);
    return false;
  }
  if (known != nullptr) all_linked_ = known->all_linked;
  return true;
}

/// Refuses a joiner that would link up in another way than the members. \returns whether it did.
bool Membership::State::refuse_other_links(const std::string& incarnation) {
  const std::optional<std::uint64_t> its = workers_.at(incarnation).registration.all_linked;
  if (!its || view_.generation == 0) return false;
  if (!all_linked_ && is_member(incarnation)) all_linked_ = its;  // this server was started again
  if (!all_linked_ || its == all_linked_ || is_member(incarnation)) return false;
  refuse(incarnation,
         "ELASTIC_ALL_LINKED (Options::all_linked) has to be the same on all workers: it is " +
             std::to_string(*its) + " here, and " + std::to_string(*all_linked_) +
             " at the members");
  return true;
}

/// Compares the layouts of all members that have sent theirs.
void Membership::State::compare_layouts() {
  for (const std::string& incarnation : remaining_members()) {
    // A difference fails the job, which removes all workers.
    if (workers_.contains(incarnation) && workers_.at(incarnation).layout) {
      compare_layout(incarnation);
    }
  }
}

/// Compares a worker's layout with the job's, which is that of the first member to send one. A
/// joiner that differs is refused. If members differ, the job fails on all of them.
void Membership::State::compare_layout(const std::string& incarnation) {
  const Layout mine = *workers_.at(incarnation).layout;
  if (!layout_) {
    if (!is_member(incarnation)) return;
    layout_ = mine;
    layout_of_ = incarnation;
    std::vector<std::string> waiting;
    for (const auto& [other, worker] : workers_) {
      if (worker.layout && !is_member(other)) waiting.push_back(other);
    }
    for (const std::string& joiner : waiting) compare_layout(joiner);
    return;
  }
  if (!is_member(incarnation)) {
    const std::string difference = workers_difference(*layout_, "the job", mine, "this worker");
    if (!difference.empty()) refuse(incarnation, difference);
    return;
  }
  // Joiners are compared before they become members, so this is a member of the first view. Its
  // program is wrong, and a job without this worker would hide that.
  const bool of_another = layout_of_ != incarnation && is_member(layout_of_);
  const std::string difference = workers_difference(
      *layout_, of_another ? rank_name(layout_of_) : "the job", mine, rank_name(incarnation));
  if (!difference.empty()) fail(difference, true);
}

/// Whether the members would wait too long while the joiner receives the state. Below min_np they
/// wait anyway.
bool Membership::State::too_slow(const Worker& worker) const {
  return worker.transfer > options_.max_join_stall && !view_.below_minimum;
}

/// Why the joiner waits, for people; empty if it waits for the next step boundary only.
std::string Membership::State::waits_for(const Worker& worker) const {
  if (!worker.layout || !too_slow(worker)) return {};
  const auto seconds = [](Milliseconds time) {
    const std::int64_t tenths = (time.count() + 50) / 100;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
  };
  return "a faster line: receiving the state would take about " + seconds(worker.transfer) +
         " on this one, and the members wait " + seconds(options_.max_join_stall) +
         " at most (--max-join-stall-ms)";
}

std::vector<const Membership::State::Worker*> Membership::State::admissible() const {
  std::vector<const Worker*> result;
  if (!layout_ || ending_) return result;
  for (const auto& [incarnation, worker] : workers_) {
    if (worker.layout && !is_member(incarnation) && !too_slow(worker)) result.push_back(&worker);
  }
  std::sort(result.begin(), result.end(),
            [](const Worker* a, const Worker* b) { return a->arrival < b->arrival; });
  return result;
}

/// A member for `joiner` to measure its line to: each in turn, so that the probes share the lines
/// of all members. None if all reachable members are on the joiner's host.
std::optional<Member> Membership::State::next_donor(const std::string& joiner) {
  const std::string& host = workers_.at(joiner).registration.endpoints.host;
  std::vector<const Member*> elsewhere;
  for (const Member& member : view_.members) {
    const bool reachable = workers_.contains(member.incarnation) && !is_absent(member.incarnation);
    if (reachable && member.endpoints.host != host) {
      elsewhere.push_back(&member);
    }
  }
  if (elsewhere.empty()) return std::nullopt;
  return *elsewhere[donors_++ % elsewhere.size()];
}

void Membership::State::send_wait_reasons() {
  if (view_.generation == 0 || over_) return;
  if (workers_.size() == count_remaining()) return;  // there are no joiners
  for (auto& [incarnation, worker] : workers_) {
    if (worker.told_to_wait || is_member(incarnation)) continue;
    const std::string why = waits_for(worker);
    if (why.empty()) continue;
    worker.told_to_wait = true;
    send(incarnation, Wait{why, next_donor(incarnation)});
    log_reason(describe(incarnation) + " waits for " + why);
  }
}

/// The number of joiners that the next view can admit: up to max_np, without the members that
/// leave.
std::size_t Membership::State::room() const {
  if (options_.max_np <= 0) return std::numeric_limits<std::size_t>::max();
  std::size_t staying = 0;
  for (const std::string& member : remaining_members()) {
    if (!workers_.at(member).removing) ++staying;
  }
  const auto most = static_cast<std::size_t>(options_.max_np);
  return staying < most ? most - staying : 0;
}

}  // namespace elastic::rendezvous
