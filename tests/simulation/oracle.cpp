#include "oracle.hpp"

#include <algorithm>

#include "model_worker.hpp"
#include "threads.hpp"

namespace elastic::simulation {

using namespace rendezvous;

namespace {

/// The limit of Membership: view changes for broken links before a worker is given up.
constexpr unsigned kStrikes = 4;
/// How long after a trouble a worker may still be given up for it: a client that dialed meanwhile
/// waits 5 s for an answer and then for at most a second, and so long may links be tried.
constexpr Milliseconds kAftermath{8000};

/// Null if `view` is none of `views`.
template <typename Views>
auto find(const Views& views, const View& view) -> const typename Views::mapped_type* {
  const auto [begin, end] = views.equal_range(view.generation);
  const auto known =
      std::find_if(begin, end, [&](const auto& each) { return each.second.view == view; });
  return known == end ? nullptr : &known->second;
}

bool is_shared_error(const Outcome& outcome) {
  return outcome.error == Code::kMismatch;
}
bool is_shared_error(std::uint64_t /*hash*/) {
  return false;
}

std::string view_name(const View& view) {
  return "view " + std::to_string(view.generation);
}

}  // namespace

void Oracle::decided(const View& next) {
  if (closed_) return;
  knows_no_view_ = false;
  const bool first = next.joined.size() == next.members.size();
  // A server that asked its members writes their view down again.
  if (const Decided* again = known(next)) {
    current_ = next;
    current_job_ = again->job;
    if (first && journals_lost_ > 0) forget_results();  // the same workers, and they begin again
    return;
  }
  if (first && journals_lost_ > 0) {
    // No worker that knew a job has come back, so the server begins a new one.
    forgotten_.merge(decided_);
    current_ = {};
    forget_results();
  }
  if (first) current_job_ = ++jobs_;
  // Generations that were skipped for a lost journal are forgotten when it is lost a second time.
  if (decided_.contains(next.generation) && journals_lost_ > 1) {
    forgotten_.merge(decided_);
  } else if (decided_.contains(next.generation)) {
    return wrong(view_name(next) + " is decided twice, as different views");
  }
  if (next.generation <= current_.generation) {
    wrong(view_name(next) + " follows " + view_name(current_));
  }
  // The first view of a new job, which has no results of an earlier one.
  if (first) forget_results();
  ++tally_.views;
  check_joiners(next);
  if (!first) {
    check_departures(next);
    for (std::size_t lane = 0; lane < kLanes; ++lane) check_lane(next, lane);
  }
  decided_.emplace(next.generation, Decided{next, current_job_});
  current_ = next;
}

const Oracle::Decided* Oracle::known(const View& view) const {
  const Decided* of_this_job = find(decided_, view);
  return of_this_job != nullptr ? of_this_job : find(forgotten_, view);
}

void Oracle::forget_results() {
  unnamed_.clear();
  named_.clear();
  committed_.clear();
}

void Oracle::server_starts(const JournalContents& journal) {
  if (journal.view) {
    current_ = *journal.view;
    if (const Decided* its = known(current_)) current_job_ = its->job;
  }
  knows_no_view_ = journals_lost_ > 0 && !journal.view;
}

void Oracle::excuse(Nodes workers, Duration trouble) {
  const TimePoint until = time_.now() + trouble + kAftermath;
  for (Node node = 0; node < kMostWorkers; ++node) {
    if (contains(workers, node)) excused_until_[node] = std::max(excused_until_[node], until);
  }
}

bool Oracle::excused(Node worker) const {
  return contains(excused_, worker) || time_.now() < excused_until_[worker];
}

void Oracle::suspected(Node one, Node other) {
  for (const Node each : {one, other}) {
    if (++strikes_[each] >= kStrikes) excuse(only(each));
  }
}

/// A majority is believed, also against a newer view that it was not told of yet.
void Oracle::journal_lost() {
  ++journals_lost_;
  Nodes newest;
  for (const Member& member : current_.members) {
    const Node node = node_of(member.incarnation);
    if (workers_[node]->generation() == current_.generation) newest |= only(node);
  }
  if (newest != members_of(current_)) newest_ |= newest;
}

bool Oracle::may_be_lost(Node worker) const {
  // A server that was restarted does not know the workers that had left, or had been asked to go.
  return excused(worker) || contains(newest_, worker) || workers_[worker]->over() ||
         workers_[worker]->program().said_bye();
}

void Oracle::check_joiners(const View& next) {
  const std::string which = view_name(next);
  if (members_of(next).count() != next.members.size()) {
    wrong(which + " has a member twice");
  }
  // The last member with the state stays for one more view where it is to be removed.
  const bool hands_over = (members_of(next) & removed_).any();
  if (scenario_.options.max_np > 0 &&
      next.members.size() >
          static_cast<std::size_t>(scenario_.options.max_np) + (hands_over ? 1 : 0)) {
    wrong(which + " has more members than max_np");
  }
  if (next.joined.empty()) return;
  // A joiner starts from the state of this step, so all other members must be in it.
  for (const Member& member : next.members) {
    if (names(next.joined, member.incarnation)) continue;
    if (workers_[node_of(member.incarnation)]->commits_done() == next.commits) continue;
    wrong(which + " admits joiners though " + member.incarnation + " is in another step");
  }
}

void Oracle::check_departures(const View& next) {
  const std::string which = view_name(next);
  for (const std::string& lost : next.lost) {
    if (!may_be_lost(node_of(lost))) wrong(which + " lost " + lost + ", which was well");
  }
  for (const std::string& left : next.left) {
    const Node leaver = node_of(left);
    if (!workers_[leaver]->program().said_bye() && !contains(removed_, leaver)) {
      wrong(which + " let " + left + " go, which had not asked to");
    }
  }
}

/// The decision agrees with the results that the members have. They are quiesced while it is made.
void Oracle::check_lane(const View& next, std::size_t lane) {
  const LaneDecision& decision = next.lanes[lane];
  const std::string where = view_name(next) + " lane " + std::to_string(lane) + ": ";
  for (const std::string& left : next.left) {
    const ModelWorker& leaver = *workers_[node_of(left)];
    if (excused(node_of(left)) || leaver.over() || leaver.position(lane) <= decision.position)
      continue;
    wrong(where + left + " left with a result that the others lack");
  }
  for (const Member& member : next.members) {
    const std::string& name = member.incarnation;
    if (names(next.joined, name)) continue;
    const ModelWorker& worker = *workers_[node_of(name)];
    const std::uint64_t position = worker.position(lane);
    const bool takes = names(decision.takers, name);
    if (worker.generation() != current_.generation) {
      wrong(where + name + " is of generation " + std::to_string(worker.generation()) +
            ", so it has not reported in " + view_name(current_));
    }
    if (position + (takes ? 1 : 0) != decision.position) {
      wrong(where + name + " at " + std::to_string(position) + " cannot come to " +
            std::to_string(decision.position));
    }
    if (!decision.takers.empty() && takes == names(decision.holders, name)) {
      wrong(where + name + " must either take or hold");
    }
    const std::string& needs = worker.needs(lane);
    const bool root_gone = !takes && !needs.empty() && !contains(members_of(next), node_of(needs));
    if (root_gone && !decision.lost) wrong(where + name + " waits for a root that is gone");
  }
}

void Oracle::installed(Node worker, std::uint64_t before, const View& view) {
  if (closed_) return;
  const std::string& name = workers_[worker]->incarnation();
  if (view.generation <= before) {
    wrong(name + " goes from generation " + std::to_string(before) + " to " +
          std::to_string(view.generation));
  }
  if (!contains(members_of(view), worker)) wrong(name + " is in a view without itself");
  const Decided* its = known(view);
  if (its == nullptr) return wrong(name + " is in a view that was never decided");
  job_of_[worker] = its->job;
}

void Oracle::check_outcome(const std::string& which, const Outcome& outcome) {
  ++tally_.operations;
  if (outcome.error != Code::kOk) return;
  const auto is_its = [&](const View& view) { return members_of(view) == outcome.contributors; };
  if (!any_view(outcome.generation, is_its)) {
    wrong(which + ": the contributors are not the members of generation " +
          std::to_string(outcome.generation));
  }
}

template <typename Key, typename Value>
void Oracle::check_agreement(std::map<Key, std::map<Node, Value>>& all, Node worker, const Key& key,
                             const Value& value, const std::string& what) {
  std::map<Node, Value>& its = all[key];
  if (!its.emplace(worker, value).second) {
    wrong(workers_[worker]->incarnation() + " returns twice from " + what);
  }
  // A worker that is no member any more may have a result that no member has: it is fenced. This
  // does not hold for a shared error: no worker returns it before all have it. Workers of a job
  // that the server has forgotten go on beside the new job.
  const Nodes members = members_of(current_);
  for (const auto& [other, others] : its) {
    if (job_of_[worker] != job_of_[other]) continue;
    const bool are_members = contains(members, worker) && contains(members, other);
    if (others == value || !(are_members || is_shared_error(value) || is_shared_error(others)))
      continue;
    wrong(workers_[worker]->incarnation() + " and " + workers_[other]->incarnation() +
          " differ in " + what);
  }
}

template void Oracle::check_agreement(std::map<std::string, std::map<Node, Outcome>>&, Node,
                                      const std::string&, const Outcome&, const std::string&);

void Oracle::returned(Node worker, std::uint64_t position, const std::string& what,
                      const Outcome& outcome) {
  if (closed_) return;
  const Threads::Undisturbed undisturbed;
  const std::string which = what + ", operation " + std::to_string(position) + " of lane 0";
  check_outcome(workers_[worker]->incarnation() + ", " + which, outcome);
  check_agreement(unnamed_, worker, position, outcome, which);
  if (!contains(members_of(current_), worker)) return;
  for (std::size_t lane = 0; lane < kLanes; ++lane) check_distance(worker, lane);
}

void Oracle::returned_named(Node worker, const std::string& name, const Outcome& outcome) {
  if (closed_) return;
  check_outcome(workers_[worker]->incarnation() + ", " + name, outcome);
  check_agreement(named_, worker, name, outcome, name);
}

void Oracle::check_data(Node worker, const std::string& what, Nodes counted, Nodes contributors,
                        const std::string& wrong_data) {
  if (closed_ || (counted == contributors && wrong_data.empty())) return;
  std::string text = workers_[worker]->incarnation() + ", " + what + ":" + wrong_data;
  for (Node node = 0; node < kMostWorkers; ++node) {
    if (contains(counted, node) == contains(contributors, node)) continue;
    text += " " + incarnation_of(node) +
            (contains(counted, node) ? " is counted and not named;" : " is named and not counted;");
  }
  wrong(text);
}

void Oracle::committed(Node worker, std::uint64_t commits, std::uint64_t hash) {
  if (closed_) return;
  check_agreement(committed_, worker, commits, hash,
                  "the results of the first " + std::to_string(commits) + " steps");
}

/// Only one result is kept, so no member may be further behind than one operation.
void Oracle::check_distance(Node worker, std::size_t lane) {
  const std::uint64_t at = workers_[worker]->position(lane);
  for (const Member& member : current_.members) {
    const ModelWorker& other = *workers_[node_of(member.incarnation)];
    if (other.killed() || other.generation() == 0) continue;
    const std::uint64_t its = other.position(lane);
    if (its <= at + 1 && at <= its + 1) continue;
    wrong(workers_[worker]->incarnation() + " is at " + std::to_string(at) + " and " +
          other.incarnation() + " at " + std::to_string(its) + " in lane " + std::to_string(lane));
  }
}

void Oracle::job_ends(End how, const View& last, const std::string& reason) {
  if (closed_) return;
  // A view that its members have reported may be taken up in the decision that ends the job.
  if (known(last) != nullptr) current_ = last;
  switch (how) {
    case End::kStopped:
      if (!stopped_) wrong("the job stopped, which nobody had asked for: " + reason);
      return allow(EarlyEnd::kStopped);
    case End::kFailed:
      return check_failure(reason);
    case End::kDone:
      return check_success(reason);
  }
}

void Oracle::allow(EarlyEnd why) {
  ++tally_.early_ends[static_cast<std::size_t>(why)];
}

/// A job may fail only where too few of its members, as they are at this moment, can go on. Members
/// are counted, not faults: a leaver, say, excuses no failure where others were enough.
void Oracle::check_failure(const std::string& reason) {
  ++tally_.failed_jobs;
  const auto least = static_cast<unsigned>(scenario_.options.min_np);
  unsigned well = 0;
  unsigned left = 0;
  unsigned with_state = 0;
  unsigned parted = 0;
  bool begun = false;
  if (current_.members.empty()) {
    // Workers that are well come within start_timeout.
    for (const auto& worker : workers_) well += may_be_lost(worker->process().self()) ? 0U : 1U;
    if (well < least) return allow(EarlyEnd::kNeverBegan);
    return wrong("the job failed to begin with " + std::to_string(well) + " workers: " + reason);
  }
  for (const Member& member : current_.members) {
    const Node node = node_of(member.incarnation);
    const ModelWorker& worker = *workers_[node];
    begun = begun || worker.program().synced() || worker.position(0) + worker.position(1) > 0;
    parted += contains(parted_, node) ? 1U : 0U;
    left += worker.over() || worker.program().said_bye() ? 0U : 1U;
    if (may_be_lost(node)) continue;
    ++well;
    with_state += worker.program().synced() ? 1U : 0U;
  }
  if (left < least) return allow(EarlyEnd::kTooFew);
  // Some that live were given up, as the job may do in their trouble.
  if (well < least) return allow(EarlyEnd::kTooFewWell);
  // Only as long as the server knows none: with a view, a lost journal excuses nothing.
  if (knows_no_view_) return allow(EarlyEnd::kNoMajority);
  // Before the first operation is complete, an eviction would hide a mistake of the setup.
  if (!begun && parted > 1) return allow(EarlyEnd::kUnlinkable);
  if (begun && with_state == 0) return allow(EarlyEnd::kStateLost);
  wrong("the job failed with " + std::to_string(well) + " members that are well: " + reason);
}

/// A job may be done before its last step only where each member that is left chose so.
void Oracle::check_success(const std::string& reason) {
  bool all_steps = true;
  bool all_chose = true;
  for (const Member& member : current_.members) {
    const Node node = node_of(member.incarnation);
    const ModelWorker& worker = *workers_[node];
    // The decision that ends the job may be the one that lets a removed worker go.
    if (!may_be_lost(node) && !contains(removed_, node)) {
      wrong("the job is done though " + member.incarnation + " goes on: " + reason);
    }
    if (worker.killed() || excused(node) || contains(removed_, node)) continue;
    if (worker.commits_done() == scenario_.steps) continue;
    all_steps = false;
    all_chose = all_chose && worker.leaves_early();
  }
  if (all_steps) return;
  if (all_chose) return allow(EarlyEnd::kAllLeft);
  wrong("the job is done before its " + std::to_string(scenario_.steps) + " steps: " + reason);
}

}  // namespace elastic::simulation
